// GPU sorts with any comparator: stable merge sorts.
//
// Lines in shared memory:
//
//   load the compared elements; positions in order
//   for widths 1, 2, 4 ... (serial)
//     each thread produces some merged positions: a binary search along the merge-path diagonal
//     finds where they start in both runs; then it takes the lesser head
//   store the elements at these positions
//
// Longer lines whose halves are already sorted (passes/target/merge_sorts.h) are merged the same
// way from global memory to global memory, several elements per thread. Whatever the comparator
// does, every position gets an element of its line.

#include <algorithm>

#include "gen/gpu/gpu.h"
#include "gen/roots.h"
#include "gen/sorting_network.h"

namespace tokamak::gpu {
namespace {

// Block sizes. Chosen.
constexpr int64_t kSortThreads = 256, kMergeThreads = 128;
// Elements per thread, in shared memory and in global memory. Chosen.
constexpr int64_t kSortOwn = 8, kOwnOfMerge = 16;
// Elements of a line in shared memory, maximum and minimum tile. Chosen.
constexpr int64_t kLongest = 2048, kShortest = 256;

int64_t KeyBytes(const LineSort& sort) {
  int64_t bytes = 0;
  for (size_t k = 0; k < sort.instr->operand_count(); ++k) {
    ElementType type = sort.instr->operand(k)->shape().type();
    if (sort.ComparatorUses(k)) bytes += BytesOf(ComputeType(type)) * (IsComplex(type) ? 2 : 1);
  }
  return bytes;
}

class SortBuilder {
 public:
  SortBuilder(const FusedRegion& region, const std::string& name)
      : region_(region),
        sort_(LineSortOf(*region.roots[0])),
        b_(name, Dialect::kGpu),
        emitter_(b_, region) {}

  BuildOutcome Build() {
    heads_ = b_.Local("heads", ScalarType::kS32, Space::kRegisters, 2);
    int64_t grid = sort_.length > MaxBlockMergeSortLength(*sort_.instr) ? Merges() : Lines();
    BuildOutcome outcome = FinishRegionKernel(b_, emitter_, region_, grid, /*writes_once=*/false);
    if (outcome.built) FinalizeGpuKernel(outcome.built->kernel);
    return outcome;
  }

 private:
  // Two adjacent runs of positions in a line.
  struct Runs {
    Scalar start, middle, end;
  };

  // ---- in shared memory

  int64_t Lines() {
    tile_ = std::max(kSortOwn, CeilPowerOfTwo(sort_.length));
    threads_ = tile_ / kSortOwn;
    block_lines_ =
        std::min(std::max<int64_t>(1, kSortThreads / threads_), CeilPowerOfTwo(sort_.lines));
    count_ = b_.Index(sort_.length);
    AddSharedArrays();
    int64_t blocks = CeilDiv(sort_.lines, block_lines_);
    b_.For("block", LoopRole::kGrid, b_.Index(blocks), [&](Scalar g) {
      auto row = [&](Scalar r) {
        b_.For("t", LoopRole::kThread, b_.Index(threads_), [&](Scalar t) {
          row_ = r;
          thread_ = t;
          // Line indices beyond the last are clamped to it.
          line_ = LesserOf(g * b_.Index(block_lines_) + r, b_.Index(sort_.lines - 1));
          Line();
        });
      };
      if (block_lines_ == 1) return row(b_.Index(0));
      b_.For("r", LoopRole::kThread, b_.Index(block_lines_), row);
    });
    return blocks;
  }

  void AddSharedArrays() {
    order_ = b_.Local("order", ScalarType::kS32, Space::kShared, 2 * block_lines_ * tile_);
    for (size_t k = 0; k < sort_.instr->operand_count(); ++k) {
      ElementArrays& arrays = keys_.emplace_back();
      ElementType type = sort_.instr->operand(k)->shape().type();
      if (!sort_.ComparatorUses(k)) continue;
      for (size_t component = 0; component < (IsComplex(type) ? 2u : 1u); ++component)
        arrays[component] =
            b_.Local("keys", ComputeType(type), Space::kShared, block_lines_ * tile_);
    }
  }

  void Line() {
    ForOwn([&](Scalar position) {
      Scalar inside = LesserOf(position, count_ - b_.Index(1));
      for (size_t k = 0; k < keys_.size(); ++k) {
        if (!sort_.ComparatorUses(k)) continue;
        Element key = emitter_.At(*sort_.instr->operand(k), At(inside));
        if (!emitter_.failure().empty()) return;
        for (size_t component = 0; component < 2; ++component)
          if (key[component].ok()) b_.Store(keys_[k][component], InRow(position), key[component]);
      }
      b_.Store(order_, InRow(position), position.As(ScalarType::kS32));
    });
    int64_t passes = 0;
    while ((int64_t{1} << passes) < tile_) ++passes;
    b_.For("p", LoopRole::kSerial, b_.Index(passes), [&](Scalar pass) {
      b_.Barrier(BarrierScope::kBlock);
      MergeInSharedMemory(pass);
    });
    b_.Barrier(BarrierScope::kBlock);
    ForOwn([&](Scalar position) {
      b_.If(position < count_, [&] { Move(position, PositionAt(b_.Index(passes % 2), position)); });
    });
  }

  // Positions of the line that a thread loads and stores.
  template <typename Body>
  void ForOwn(Body&& body) {
    b_.For("i", LoopRole::kUnrolled, b_.Index(kSortOwn),
           [&](Scalar i) { body(i * b_.Index(threads_) + thread_); });
  }

  // `half`: which of the two position buffers.
  Scalar InRow(Scalar position) { return row_ * b_.Index(tile_) + position; }
  Scalar InOrder(Scalar half, Scalar position) {
    return half * b_.Index(block_lines_ * tile_) + InRow(position);
  }
  Scalar PositionAt(Scalar half, Scalar index) {
    Scalar inside = LesserOf(index, b_.Index(tile_ - 1));
    return Bounded(b_.Read(order_, InOrder(half, inside)), tile_ - 1);
  }

  void MergeInSharedMemory(Scalar pass) {
    Scalar width = b_.Index(1) << pass, half = pass % b_.Index(2);
    Scalar first = thread_ * b_.Index(kSortOwn);
    auto before = [&](Scalar x, Scalar y) { return Before(KeysAt(half, x), KeysAt(half, y)); };
    Runs runs = RunsAt(first, width, count_);
    Search(runs, LesserOf(first, count_), pass + b_.Index(1), before);
    b_.For("o", LoopRole::kSerial, b_.Index(kSortOwn), [&](Scalar o) {
      Scalar out = first + o;
      Runs own = RunsAt(out, width, count_);
      // A thread merges several short runs.
      b_.If(out == own.start, [&] { SetHeads(own.start, own.middle); });
      Scalar from = Take(own, before);
      b_.Store(order_, InOrder(b_.Index(1) - half, out),
               PositionAt(half, from).As(ScalarType::kS32));
    });
  }

  std::vector<Element> KeysAt(Scalar half, Scalar index) {
    Scalar position = InRow(PositionAt(half, index));
    std::vector<Element> keys(keys_.size());
    for (size_t k = 0; k < keys_.size(); ++k) {
      ElementType type = sort_.instr->operand(k)->shape().type();
      if (!sort_.ComparatorUses(k)) continue;
      for (size_t component = 0; component < (IsComplex(type) ? 2u : 1u); ++component)
        keys[k][component] = b_.Read(keys_[k][component], position);
    }
    return keys;
  }

  // ---- in global memory

  int64_t Merges() {
    int64_t chunks = CeilDiv(sort_.length, kOwnOfMerge), all = sort_.lines * chunks;
    int64_t threads = std::min(kMergeThreads, all), blocks = CeilDiv(all, threads);
    int64_t steps = 1;
    while ((int64_t{1} << (steps - 1)) < sort_.length / 2) ++steps;
    b_.For("block", LoopRole::kGrid, b_.Index(blocks), [&](Scalar g) {
      b_.For("t", LoopRole::kThread, b_.Index(threads), [&](Scalar t) {
        Scalar number = g * b_.Index(threads) + t;
        b_.If(number < b_.Index(all), [&] {
          line_ = number / b_.Index(chunks);
          MergeChunk(number % b_.Index(chunks) * b_.Index(kOwnOfMerge), steps);
        });
      });
    });
    return blocks;
  }

  void MergeChunk(Scalar first, int64_t steps) {
    Scalar length = b_.Index(sort_.length);
    auto before = [&](Scalar x, Scalar y) { return Before(ElementsAt(x), ElementsAt(y)); };
    Runs runs{b_.Index(0), b_.Index(sort_.length / 2), length};
    Search(runs, first, b_.Index(steps), before);
    b_.For("o", LoopRole::kSerial, b_.Index(kOwnOfMerge), [&](Scalar o) {
      b_.If(first + o < length, [&] { Move(first + o, Take(runs, before)); });
    });
  }

  std::vector<Element> ElementsAt(Scalar index) {
    Scalar inside = LesserOf(index, b_.Index(sort_.length - 1));
    std::vector<Element> elements(sort_.instr->operand_count());
    for (size_t k = 0; k < elements.size(); ++k)
      if (sort_.ComparatorUses(k)) elements[k] = emitter_.At(*sort_.instr->operand(k), At(inside));
    return elements;
  }

  // ---- merging

  // The runs of `width` elements that output position `out` is merged from, among the first
  // `count`.
  Runs RunsAt(Scalar out, Scalar width, Scalar count) {
    Scalar pair = width * b_.Index(2), start = out - out % pair;
    return {start, LesserOf(start + width, count), LesserOf(start + pair, count)};
  }

  // Sets the heads to where both runs start for the merged elements from `out` on.
  template <typename BeforeAt>
  void Search(const Runs& runs, Scalar out, Scalar steps, BeforeAt&& before) {
    Scalar one = b_.Index(1), done = GreaterOf(out - runs.start, b_.Index(0));
    Scalar least = GreaterOf(done - (runs.end - runs.middle), b_.Index(0));
    SetHeads(least, LesserOf(done, runs.middle - runs.start));
    b_.For("s", LoopRole::kSerial, steps, [&](Scalar) {
      Scalar low = Head(0), high = Head(1);
      Scalar middle = (low + high) / b_.Index(2);
      Scalar right = GreaterOf(runs.middle + done - one - middle, b_.Index(0));
      Scalar is_open = low < high, right_first = before(right, runs.start + middle);
      SetHeads(Choose(is_open & !right_first, middle + one, low),
               Choose(is_open & right_first, middle, high));
    });
    Scalar taken = Head(0);
    SetHeads(runs.start + taken, runs.middle + (done - taken));
  }

  // Takes the lesser head of both runs.
  template <typename BeforeAt>
  Scalar Take(const Runs& runs, BeforeAt&& before) {
    Scalar left = Head(0), right = Head(1), one = b_.Index(1);
    Scalar none_left = left >= runs.middle, some_right = right < runs.end;
    Scalar take_right = none_left | (some_right & before(right, left));
    SetHeads(Choose(take_right, left, left + one), Choose(take_right, right + one, right));
    return Choose(take_right, right, left);
  }

  Scalar Head(int64_t side) { return Bounded(b_.Read(heads_, b_.Index(side)), sort_.length); }
  void SetHeads(Scalar left, Scalar right) {
    b_.Store(heads_, b_.Index(0), left.As(ScalarType::kS32));
    b_.Store(heads_, b_.Index(1), right.As(ScalarType::kS32));
  }

  // Clamped so that range analysis proves that indices fit in 32 bits.
  Scalar Bounded(Scalar position, int64_t last) {
    return LesserOf(GreaterOf(position.As(ScalarType::kIndex), b_.Index(0)), b_.Index(last));
  }

  // ---- elements

  Coordinates At(Scalar position) { return CoordinatesInLine(b_, sort_, line_, position); }

  void Move(Scalar to, Scalar from) {
    Scalar inside = LesserOf(from, b_.Index(sort_.length - 1));
    std::vector<Element> moved;
    for (const Instr* operand : sort_.instr->operands())
      moved.push_back(emitter_.At(*operand, At(inside)));
    for (size_t k = 0; k < moved.size(); ++k)
      if (emitter_.failure().empty()) emitter_.Store(*sort_.instr, k, At(to), moved[k]);
  }

  Scalar Before(const std::vector<Element>& x, const std::vector<Element>& y) {
    std::vector<Element> both;
    for (size_t k = 0; k < x.size(); ++k) {
      Element none = ConstantElement(b_, sort_.instr->operand(k)->shape().type(), 0);
      both.push_back(x[k][0].ok() ? x[k] : none);
      both.push_back(y[k][0].ok() ? y[k] : none);
    }
    std::optional<Scalar> before;
    if (emitter_.failure().empty()) before = ComesBefore(b_, sort_, both);
    if (before) return *before;
    emitter_.Fail("sort: its computation has no scalar formula");
    return b_.Constant(ScalarType::kPred, 0);
  }

  const FusedRegion& region_;
  LineSort sort_;
  KernelBuilder b_;
  ElementEmitter emitter_;
  ArrayId heads_{};
  Scalar line_;
  // Lines in shared memory.
  ArrayId order_{};
  std::vector<ElementArrays> keys_;
  int64_t tile_ = 1, threads_ = 1, block_lines_ = 1;
  Scalar row_, thread_, count_;
};

}  // namespace

int64_t MaxBlockMergeSortLength(const Instr& sort) {
  int64_t longest = kLongest, bytes = 2 * BytesOf(ScalarType::kS32) + KeyBytes(LineSortOf(sort));
  while (longest > kShortest && longest * bytes > kStaticSharedBytes) longest /= 2;
  return longest;
}

std::optional<std::string> WhyNoSortKernel(const Instr& sort) {
  if (IsRadixScatter(sort)) return std::nullopt;
  if (std::optional<std::string> why = WhyNoComparatorCode(sort)) return why;
  if (IsBlockRadixSort(sort) || IsNetworkSort(sort)) return std::nullopt;
  int64_t length = LineSortOf(sort).length;
  if (length > INT32_MAX) return "sort: a line has more than 2^31 elements";
  if (length > MaxBlockMergeSortLength(sort) && !HasSortedHalves(sort))
    return "sort: a line exceeds shared memory";
  return std::nullopt;
}

BuildOutcome BuildSort(const FusedRegion& region, const Machine& machine, const std::string& name) {
  if (region.roots.size() != 1 || (region.instrs.size() != 1 && !IsSortWithProducers(region)))
    return {std::nullopt, "a sort is not fused with other instructions"};
  if (std::optional<std::string> why = WhyNoSortKernel(*region.roots[0]))
    return {std::nullopt, *why};
  if (IsBlockRadixSort(*region.roots[0])) return BuildBlockRadixSort(region, name);
  if (IsRadixScatter(*region.roots[0])) return BuildRadixScatter(region, name);
  if (IsNetworkSort(*region.roots[0])) return BuildNetworkSort(region, machine, name);
  return SortBuilder(region, name).Build();
}

}  // namespace tokamak::gpu
