#include <algorithm>
#include <limits>

#include "cost/machine.h"
#include "gen/gpu/gpu.h"
#include "gen/online_sum_exp.h"
#include "passes/passes.h"
#include "rewrite/edit_computations.h"
#include "rewrite/editor.h"

namespace tokamak {
namespace {

// Elements per part. Chosen: several blocks per SM can each keep a part on chip.
constexpr int64_t kPart = 8192;
// Elements per part of rows that have more than kLogsumexpMaxSplits such parts. Chosen: the block
// that combines the parts then reads fewer of them.
constexpr int64_t kLongPart = 4 * kPart;
// Maximum parts per row, unless parts would be four times as long. Chosen: one block combines them,
// with four per thread.
constexpr int64_t kLogsumexpMaxSplits = 4096;
// Minimum blocks per SM. Chosen: one loads while the other computes.
constexpr int64_t kMinBlocksPerSm = 2;
// Bytes of a row that a block can keep on chip: with two blocks per SM, and with one.
constexpr int64_t kTwoBlocksBytes = gpu::kLongRows[0].Bytes(),
                  kOneBlockBytes = gpu::kLongRows[1].Bytes();
// Parts are multiples of this many elements. Chosen: vector loads of 16 bytes are aligned for every
// element type.
constexpr int64_t kLogsumexpUnit = 16;

// A sum to split, with the maximum of its rows.
struct Found {
  Instr *sum = nullptr, *greatest = nullptr, *x = nullptr, *shift = nullptr;
  int64_t row = 1;
  bool alone = false;  // no further pass over the row follows
};

bool IsReduce(const Instr& instr) {
  return instr.op() == Op::kReduce && !WhyNoReduceKernel(instr);
}

// Reduces only the last dimensions: whole rows.
bool ReducesRows(const Reducer& reducer) {
  auto reduced_count = static_cast<int64_t>(reducer.reduced_dims.size());
  return reduced_count > 0 &&
         reducer.reduced_dims.front() + reduced_count == reducer.input().rank();
}

std::optional<Found> Find(Instr& sum) {
  Reducer reducer = ReducerOf(sum);
  if (sum.operand(0)->op() != Op::kExp || !ReducesRows(reducer)) return std::nullopt;
  Instr& difference = *sum.operand(0)->operand(0);
  if (difference.op() != Op::kSubtract) return std::nullopt;
  Found found{&sum, nullptr, difference.operand(0)};
  for (Instr* user : found.x->users())
    if (IsReduce(*user) && OnlineSumExpOf(reducer, ReducerOf(*user))) found.greatest = user;
  if (found.greatest == nullptr) return std::nullopt;
  found.shift = difference.operand(1)->operand(0);
  found.alone = sum.operand(0)->users().size() == 1 && difference.users().size() == 1 &&
                found.x->users().size() == 2;
  for (int64_t d : reducer.reduced_dims) found.row *= found.x->shape().dim(static_cast<size_t>(d));
  return found;
}

class LogsumexpSplitter {
 public:
  LogsumexpSplitter(const Found& found, int64_t count)
      : found_(found), make_(*found.sum), type_(found.x->shape().type()) {
    size_ = found.row / count;
    if (found.row % count != 0) size_ = size_ / kLogsumexpUnit * kLogsumexpUnit;
    count_ = count;
    kept_ = found.sum->shape().dims();
    rank_ = static_cast<int64_t>(kept_.size());
  }

  void Split() {
    // At least two chunks, which are concatenated. This prevents fusing the scaling of the sums
    // into the kernel that reads the rows, which would have to wait for the overall maximum.
    int64_t rest = found_.row - count_ * size_, first = rest > 0 ? count_ : count_ / 2;
    AddParts(0, first, size_);
    if (first < count_) AddParts(first * size_, count_ - first, size_);
    if (rest > 0) AddParts(count_ * size_, 1, rest);
    Instr* most = Joined(greatest_);
    Instr* whole = Reduced(*found_.greatest, most, found_.greatest->operand(1));
    // The shift is the maximum itself, or computed from it.
    Instr* shift = found_.shift == found_.greatest ? whole : found_.shift;
    Editor(*found_.greatest).Replace(whole);
    Shape splits = most->shape();
    shift = make_.Make(Op::kBroadcast, splits, {shift}, DimensionsAttrs{Counted()});
    Instr* scale = make_.Make(Op::kExp, splits, {make_.Make(Op::kSubtract, splits, {most, shift})});
    Instr* terms = make_.Make(Op::kMultiply, splits, {Joined(sums_), scale});
    make_.Replace(Reduced(*found_.sum, terms, found_.sum->operand(1)));
  }

 private:
  // The dimensions that enumerate rows.
  Dims Counted() const {
    Dims dims;
    for (int64_t d = 0; d < rank_; ++d) dims.push_back(d);
    return dims;
  }
  Shape With(std::initializer_list<int64_t> behind) const {
    Dims dims = kept_;
    dims.insert(dims.end(), behind);
    return Shape::Array(type_, dims);
  }

  // Reduces the last dimension of an array of parts with the reducer of `as`.
  Instr* Reduced(const Instr& as, Instr* of, Instr* first) {
    Dims dims = of->shape().dims();
    dims.pop_back();
    Instr* made = make_.Make(Op::kReduce, Shape::Array(type_, dims), {of, first},
                             DimensionsAttrs{{static_cast<int64_t>(dims.size())}});
    made->set_called({as.called(0)});
    return made;
  }

  Instr* Number(double value) { return make_.Constant(Literal::Scalar(type_, value)); }

  // Adds the maxima of `count` parts of `size`, starting at element `begin` of each row, and the
  // sums over them.
  void AddParts(int64_t begin, int64_t count, int64_t size) {
    Instr* x = make_.Reshaped(found_.x, With({found_.row}).dims());
    if (count * size < found_.row) {
      auto all = static_cast<size_t>(rank_ + 1);
      SliceAttrs slice{Dims(all, 0), x->shape().dims(), Dims(all, 1)};
      slice.starts.back() = begin;
      slice.limits.back() = begin + count * size;
      x = make_.Make(Op::kSlice, With({count * size}), {x}, slice);
    }
    x = make_.Reshaped(x, With({count, size}).dims());
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    Instr* greatest = Reduced(*found_.greatest, x, Number(-kInfinity));
    // A part without finite elements uses shift 0: exp(-inf - 0) is 0 and exp(inf - 0) is inf, as
    // required.
    Shape splits = greatest->shape();
    Instr* finite =
        make_.Make(Op::kIsFinite, Shape::Array(ElementType::kPred, splits.dims()), {greatest});
    Instr* shift =
        make_.Make(Op::kSelect, splits, {finite, greatest, make_.Broadcast(Number(0), splits)});
    Dims counted = Counted();
    counted.push_back(rank_);
    Instr* broadcast = make_.Make(Op::kBroadcast, x->shape(), {shift}, DimensionsAttrs{counted});
    Instr* terms =
        make_.Make(Op::kExp, x->shape(), {make_.Make(Op::kSubtract, x->shape(), {x, broadcast})});
    sums_.push_back(Reduced(*found_.sum, terms, Number(-0.0)));
    greatest_.push_back(greatest);
  }

  Instr* Joined(const std::vector<Instr*>& concat_operands) {
    int64_t splits = 0;
    for (const Instr* concat_operand : concat_operands)
      splits += concat_operand->shape().dims().back();
    return make_.Make(Op::kConcatenate, With({splits}), concat_operands, DimensionAttrs{rank_});
  }

  const Found& found_;
  Editor make_;
  ElementType type_;
  int64_t count_ = 1, size_ = 1, rank_ = 0;
  Dims kept_;
  std::vector<Instr*> greatest_, sums_;
};

// Parts per row; 1 if the machine has enough rows to fill its blocks. (gen/gpu/rows.cc also reads
// rows that are too long to keep on chip only once.)
int64_t SplitsWanted(const Found& found, const Machine& machine) {
  int64_t rows = found.sum->shape().ElementCount();
  int64_t bytes = found.row * static_cast<int64_t>(BytesOf(ComputeType(found.x->shape().type())));
  if (rows >= kMinBlocksPerSm * machine.cores ||
      bytes <= (found.alone ? kTwoBlocksBytes : kOneBlockBytes))
    return 1;
  return std::min(found.row / kPart, std::max(kLogsumexpMaxSplits, found.row / kLongPart));
}

}  // namespace

// Split logsumexp (online softmax) for GPUs. Sums of exp(x - m) along a few long rows, where m is
// the maximum of the row, become sums over parts that do not depend on m, so the row is read once:
//
//   m_p = max of part p of a row,   s_p = sum of exp(x - m_p) over it
//   m   = max of m_p,               s   = sum of s_p exp(m_p - m)
//
// The rounding order changes; infinities and NaN are preserved. Runs before SplitReductions, which
// would split both reductions separately. Record reduce.split-logsumexp.
Result<Changed> SplitLogsumexp(Module& module, PassContext& context) {
  return EditComputations(module, [&](Computation& computation) {
    bool changed = false;
    std::vector<Instr*> sums;  // independent of each other
    for (Instr* instr : computation.Instrs())
      if (IsReduce(*instr) && ReducerOf(*instr).ops == std::vector{Op::kAdd}) sums.push_back(instr);
    for (Instr* instr : sums) {
      std::optional<Found> found = Find(*instr);
      if (!found || HasControlDependencies(*found->sum) || HasControlDependencies(*found->greatest))
        continue;
      int64_t splits = SplitsWanted(*found, context.machine());
      if (splits <= 1) continue;
      context.Accepted("reduce.split-logsumexp", *instr, nullptr,
                       std::to_string(splits) + " segments per row, each with its own maximum");
      LogsumexpSplitter(*found, splits).Split();
      changed = true;
    }
    return changed;
  });
}

}  // namespace tokamak
