// Histograms: a scatter that adds ones, counting for each batch how many elements have each of a
// few numbers.
//
//   one block per batch; each thread has its own counts in shared memory, one byte each
//     each thread counts some of the elements, 16 bytes at a time
//     each thread sums the counts of four numbers over all threads
//
// There are no atomics, and a thread's counts are in a bank of their own.

#include <algorithm>
#include <bit>

#include "gen/gpu/gpu.h"
#include "gen/scatter_elements.h"

namespace tokamak::gpu {
namespace {

// Maximum elements per thread: a count is one byte (structure of the packed words).
constexpr int64_t kMaxOfThread = 255;
// Counts packed in a 32-bit word. Chosen: bytes, the fewest bits that a thread can unpack in one
// operation. Maximum number of distinct values: four per thread, which sums them up.
constexpr int64_t kPacked = 4, kMaxCounted = kHistogramThreads * kPacked;
// Bits of a thread's count, and of a sum over all threads; a word with ones in the bits of the even
// counts. They follow from kPacked (structure of the packed words).
constexpr int64_t kCountBits = 32 / kPacked, kSumBits = 2 * kCountBits;
constexpr int64_t kEvenCounts = 0x00FF00FF;
// Elements that a thread loads together. Chosen: enough loads in flight.
constexpr int64_t kInFlight = 16;

// Whether all elements are this number.
bool IsSplat(const Instr& array, int64_t number) {
  const Instr* value = &array;
  while (value->op() == Op::kBroadcast || value->op() == Op::kReshape) value = value->operand(0);
  return value->op() == Op::kConstant && value->shape().ElementCount() == 1 &&
         value->attrs<ConstantAttrs>().literal.IntAt(0) == number;
}

class CountsBuilder {
 public:
  CountsBuilder(const FusedRegion& region, const Machine& machine, const std::string& name)
      : region_(region),
        machine_(machine),
        b_(name, Dialect::kGpu),
        emitter_(b_, region),
        elements_(b_, emitter_, *region.roots[0]) {}

  BuildOutcome Build() {
    is_new_ = IsSplat(*region_.roots[0]->operand(0), 0);
    const ScatterAttrs& attrs = region_.roots[0]->attrs<ScatterAttrs>();
    along_ = static_cast<size_t>(attrs.scatter_dims_to_operand_dims[0]);
    numbers_ = region_.roots[0]->shape().dim(along_);
    int64_t batches = elements_.batch_count();
    of_thread_ = elements_.window_count() / batches / kHistogramThreads;
    at_once_ = std::min(of_thread_, kInFlight);
    lanes_ = VectorWidthFor(region_, machine_, at_once_, elements_.window_count());
    counts_ = b_.Local("counts", kCount, Space::kShared, numbers_ / kPacked * kHistogramThreads);
    own_ = b_.Local("own", ScalarType::kS32, Space::kRegisters, at_once_);
    b_.For("batch", LoopRole::kGrid, b_.Index(batches), [&](Scalar batch) {
      b_.For("t", LoopRole::kThread, b_.Index(kHistogramThreads), [&](Scalar t) {
        batch_ = batch;
        thread_ = t;
        Batch();
      });
    });
    BuildOutcome outcome = FinishBlockKernel(b_, emitter_, region_, batches);
    if (BuiltKernel* built = outcome.built ? &*outcome.built : nullptr)
      built->must_alias.emplace_back(built->arguments.size() - 1, region_.roots[0]->operand(0));
    return outcome;
  }

 private:
  static constexpr ScalarType kCount = ScalarType::kU32;

  template <typename Body>
  void ForEach(int64_t count, Body&& body) {
    b_.For("i", LoopRole::kUnrolled, b_.Index(count), body);
  }
  static int64_t LogOf(int64_t power) { return std::countr_zero(static_cast<uint64_t>(power)); }
  Scalar Number(int64_t value) { return b_.ConstantBits(kCount, static_cast<Bits>(value)); }

  void Batch() {
    ForEach(numbers_ / kPacked, [&](Scalar k) {
      b_.Store(counts_, k * b_.Index(kHistogramThreads) + thread_, Number(0));
    });
    int64_t iterations = of_thread_ / at_once_;
    if (iterations == 1) {
      Some(b_.Index(0));
    } else {
      b_.For("k", LoopRole::kSerial, b_.Index(iterations), [&](Scalar k) { Some(k); });
    }
    b_.Barrier(BarrierScope::kBlock);
    b_.If(thread_ < b_.Index(numbers_ / kPacked), [&] { SumUp(); });
  }

  void Some(Scalar iteration) {
    ForEach(at_once_ / lanes_, [&](Scalar i) {
      Scalar vector =
          (iteration * b_.Index(at_once_ / lanes_) + i) * b_.Index(kHistogramThreads) + thread_;
      ForLanes(b_, lanes_, [&](Scalar lane) {
        Scalar number = NumberAt(vector * b_.Index(lanes_) + lane);
        if (number.ok()) b_.Store(own_, i * b_.Index(lanes_) + lane, number);
      });
    });
    if (!emitter_.failure().empty()) return;
    ForEach(at_once_, [&](Scalar i) {
      // An index that is out of range is -1.
      Scalar number = b_.Read(own_, i);
      Scalar bits = number.BitsAs(kCount) & Number(numbers_ - 1), one = Number(1);
      if (!all_fit_) one = Choose(number >= 0.0, one, Number(0));
      Scalar word = bits >> Number(LogOf(kPacked)), count_of_word = bits & Number(kPacked - 1);
      Scalar at = word.As(ScalarType::kIndex) * b_.Index(kHistogramThreads) + thread_;
      Scalar count = b_.Read(counts_, at) + (one << (count_of_word << Number(LogOf(kCountBits))));
      b_.Store(counts_, at, count);
    });
  }

  Scalar NumberAt(Scalar window) {
    std::vector<Scalar> starts = elements_.Starts(elements_.WindowCoordinates(batch_, window));
    if (!emitter_.failure().empty()) return {};
    Scalar number = elements_.ClampedStarts(starts)[along_].As(ScalarType::kS32);
    Scalar fits = elements_.IsInBounds(starts);
    all_fit_ = b_.kernel().IsConstant(fits.id());
    return Choose(fits, number, number.Like(-1));
  }

  // A thread sums four numbers. It starts with its own column, so all threads access different
  // banks.
  void SumUp() {
    ArrayId sums = b_.Local("sums", kCount, Space::kRegisters, 2);
    Scalar even = b_.Index(0), odd = b_.Index(1), low = Number(kEvenCounts);
    b_.Store(sums, even, Number(0));
    b_.Store(sums, odd, Number(0));
    ForEach(kHistogramThreads, [&](Scalar k) {
      Scalar column = (k + thread_) % b_.Index(kHistogramThreads);
      Scalar four = b_.Read(counts_, thread_ * b_.Index(kHistogramThreads) + column);
      b_.Store(sums, even, b_.Read(sums, even) + (four & low));
      b_.Store(sums, odd, b_.Read(sums, odd) + ((four >> Number(kCountBits)) & low));
    });
    Coordinates window_at = elements_.WindowCoordinates(batch_, b_.Index(0));
    Scalar pairs[2] = {b_.Read(sums, even), b_.Read(sums, odd)};
    ScalarType type = ComputeType(region_.roots[0]->shape().type());
    ForLanes(b_, kPacked, [&](Scalar j) {
      std::vector<Scalar> starts(region_.roots[0]->shape().dims().size());
      starts[along_] = thread_ * b_.Index(kPacked) + j;
      Scalar pair = Choose(j % b_.Index(2) == b_.Index(0), pairs[0], pairs[1]);
      Scalar is_lower = j < b_.Index(2);
      Scalar lower = pair & Number((int64_t{1} << kSumBits) - 1);
      Scalar count = Choose(is_lower, lower, pair >> Number(kSumBits)).As(type);
      Scalar index = elements_.IndexOf(window_at, starts, {});
      elements_.Store(index, {is_new_ ? count : elements_.Old(index)[0] + count, {}});
    });
  }

  const FusedRegion& region_;
  const Machine& machine_;
  KernelBuilder b_;
  ElementEmitter emitter_;
  ScatterElements elements_;
  bool is_new_ = false;   // the array is all zeros
  bool all_fit_ = false;  // no index is out of range
  size_t along_ = 0;
  int64_t numbers_ = 1, of_thread_ = 1, at_once_ = 1, lanes_ = 1;
  ArrayId counts_{}, own_{};
  Scalar batch_, thread_;
};

bool IsSum(const Computation& body) {
  const Instr& root = *body.root();
  return root.op() == Op::kAdd && root.operand(0)->op() == Op::kParameter &&
         root.operand(1)->op() == Op::kParameter && root.operand(0) != root.operand(1);
}

}  // namespace

bool IsHistogram(const Instr& scatter) {
  if (scatter.op() != Op::kScatter || scatter.operand_count() != 1 + 2 || scatter.captures() > 0 ||
      !scatter.shape().IsArray())
    return false;
  const ScatterAttrs& attrs = scatter.attrs<ScatterAttrs>();
  ElementType type = scatter.shape().type();
  if ((type != ElementType::kS32 && type != ElementType::kU32) || attrs.unique_indices ||
      !attrs.update_window_dims.empty() || attrs.scatter_dims_to_operand_dims.size() != 1 ||
      attrs.input_batching_dims.empty() || !IsSplat(*scatter.operand(2), 1) ||
      !IsSum(*scatter.called(0)))
    return false;
  int64_t numbers = scatter.shape().dim(static_cast<size_t>(attrs.scatter_dims_to_operand_dims[0]));
  int64_t batches = 1;
  for (int64_t d : attrs.input_batching_dims)
    batches *= scatter.shape().dim(static_cast<size_t>(d));
  int64_t of_thread = scatter.operand(2)->shape().ElementCount() / batches / kHistogramThreads;
  return batches * of_thread * kHistogramThreads == scatter.operand(2)->shape().ElementCount() &&
         of_thread > 0 && of_thread <= kMaxOfThread &&
         of_thread % std::min(of_thread, kInFlight) == 0 && numbers >= kPacked &&
         numbers <= kMaxCounted && numbers == CeilPowerOfTwo(numbers);
}

BuildOutcome BuildHistogram(const FusedRegion& region, const Machine& machine,
                            const std::string& name) {
  return CountsBuilder(region, machine, name).Build();
}

}  // namespace tokamak::gpu
