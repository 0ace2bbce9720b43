// Split-K for GPUs: dots with few results (m * n <= 16) and a large contracted dimension K, such as
// dots of long vectors or x^T x of many samples. A tiled GEMM has too few tiles for the machine.
// Instead each result is a reduction:
//
//   r[i,j] = reduce(multiply(row i of lhs, row j of rhs))      over K
//
// All m * n reductions have the same input shape, so fusion computes them in one kernel that reads
// each operand once, with m * n accumulators per thread. If the contracted dimensions follow the
// batch dimensions, K is also split into parts:
//
//   [batch, K]  ->  partial sums [batch, m * n, parts]  ->  one reduction over the parts
//
// A dot of 2 x 2 with K = 4,194,304 takes 450 us with cuBLASLt, while reading the bytes takes 15
// us. Sums accumulate in a wide type and are rounded once, as in a dot.

#include <algorithm>

#include "gen/dot_dimensions.h"
#include "gen/element.h"
#include "gen/region.h"
#include "passes/passes.h"
#include "passes/target/split_sizes.h"
#include "rewrite/edit_computations.h"
#include "rewrite/editor.h"

namespace tokamak {
namespace {

// Accumulators per thread, each for four elements at once. Chosen: they and the loaded operands
// must fit in registers.
constexpr int64_t kMostSums = 16;
// Maximum stride of an operand in elements. Chosen: beyond it, a warp's loads touch more cache
// lines than the data they use is worth.
constexpr int64_t kMaxStride = 8;
// kLeastDepth: minimum contracted size (K). kLeastElements: minimum elements of both operands.
// Chosen: with less, there is not work for many threads of many blocks, and adding their sums costs
// more than it saves.
constexpr int64_t kLeastDepth = 2048, kLeastElements = 1 << 17;

class SplitKDot {
 public:
  SplitKDot(Instr& dot, const Machine& machine)
      : dot_(dot), machine_(machine), dot_dims_(dot), make_(dot) {}

  bool IsOne() {
    if (!IsPlainArray(dot_.shape()) || !IsReal(dot_.shape().type()) || dot_dims_.IsEmpty())
      return false;
    for (const Instr* operand : dot_.operands())
      if (!IsPlainArray(operand->shape()) || !IsReal(operand->shape().type())) return false;
    bool few = dot_dims_.m <= kMostSums && dot_dims_.n <= kMostSums &&
               dot_dims_.m * dot_dims_.n <= kMostSums;
    return few && dot_dims_.k >= kLeastDepth &&
           dot_dims_.batch * dot_dims_.k >= kLeastElements / (dot_dims_.m + dot_dims_.n) &&
           StrideOf(dot_dims_.lhs_dims, dot_dims_.lhs_free) <= kMaxStride &&
           StrideOf(dot_dims_.rhs_dims, dot_dims_.rhs_free) <= kMaxStride && HaveSameLayout();
  }

  int64_t results() const { return dot_dims_.m * dot_dims_.n; }

  void Write() {
    type_ = AccumulatorElementType(dot_.shape().type());
    sum_ = AdditionFor(dot_, type_);
    zero_ = make_.Constant(Literal::Scalar(type_, 0));
    std::vector<Instr*> lhs = Rows(0, dot_dims_.lhs_free);
    bool same = dot_.operand(0) == dot_.operand(1) && dot_dims_.lhs_free == dot_dims_.rhs_free;
    std::vector<Instr*> rhs = same ? lhs : Rows(1, dot_dims_.rhs_free);
    Instr* all = WithSplitDim(lhs, rhs);
    if (all == nullptr) all = Beside(SumsOf(lhs, rhs, shared_, reduced_dims_));
    all = make_.Converted(all, dot_.shape().type());
    make_.Replace(make_.Reshaped(all, dot_.shape().dims()));
  }

 private:
  // The stride between adjacent elements of a row: the size of the free dimensions in between.
  static int64_t StrideOf(const Dims& dims, const Dims& free) {
    int64_t stride = 1;
    for (size_t d = dims.size(); d-- > 0 && std::ranges::count(free, static_cast<int64_t>(d)) > 0;)
      stride *= dims[d];
    return stride;
  }

  // Whether batch and contracted dimensions are in the same order in both operands, and batch
  // dimensions in the order of the result.
  bool HaveSameLayout() {
    const DotAttrs& attrs = dot_dims_.attrs;
    if (!std::ranges::is_sorted(attrs.lhs_batch)) return false;
    std::vector<std::pair<int64_t, int64_t>> both;
    for (size_t i = 0; i < attrs.lhs_batch.size(); ++i)
      both.emplace_back(attrs.lhs_batch[i], attrs.rhs_batch[i]);
    for (size_t i = 0; i < attrs.lhs_contracting.size(); ++i)
      both.emplace_back(attrs.lhs_contracting[i], attrs.rhs_contracting[i]);
    std::ranges::sort(both);
    for (size_t i = 0; i < both.size(); ++i) {
      if (i > 0 && both[i - 1].second > both[i].second) return false;
      bool reduced_dims = std::ranges::count(attrs.lhs_contracting, both[i].first) > 0;
      if (reduced_dims) reduced_dims_.push_back(static_cast<int64_t>(i));
      int64_t size = dot_dims_.lhs_dims[static_cast<size_t>(both[i].first)];
      shared_.push_back(size);
      if (!reduced_dims) batch_.push_back(size);
    }
    return true;
  }

  // Each row of an operand, with the dimensions common to both operands.
  std::vector<Instr*> Rows(size_t side, const Dims& free) {
    Instr* x = dot_.operand(side);
    const Dims dims = x->shape().dims(), sizes = SizesAlong(dims, free);
    x = make_.Converted(x, type_);
    std::vector<Instr*> rows;
    for (int64_t number = 0; number < SizeAlong(dims, free); ++number) {
      Dims from(dims.size(), 0), to = dims;
      int64_t left = number;
      for (size_t f = free.size(); f-- > 0; left /= sizes[f]) {
        auto d = static_cast<size_t>(free[f]);
        from[d] = left % sizes[f];
        to[d] = from[d] + 1;
      }
      rows.push_back(make_.Reshaped(Sliced(x, from, to), shared_));
    }
    return rows;
  }

  // The sum of products of each pair of rows, which have these dimensions.
  std::vector<Instr*> SumsOf(const std::vector<Instr*>& lhs, const std::vector<Instr*>& rhs,
                             const Dims& dims, const Dims& reduced_dims) {
    std::vector<Instr*> sums;
    for (size_t i = 0; i < lhs.size(); ++i)
      for (size_t j = 0; j < rhs.size(); ++j) {
        // In a product of a matrix with itself each sum appears twice.
        bool again = lhs == rhs && j < i;
        sums.push_back(again ? sums[j * rhs.size() + i]
                             : SumOf(lhs[i], rhs[j], dims, reduced_dims));
      }
    return sums;
  }

  Instr* SumOf(Instr* x, Instr* y, const Dims& dims, const Dims& reduced_dims) {
    return Reduced(make_.Make(Op::kMultiply, Shape::Array(type_, dims), {x, y}), reduced_dims);
  }

  Instr* Reduced(Instr* x, const Dims& reduced_dims) {
    Dims kept;
    for (size_t d = 0; d < x->shape().dims().size(); ++d)
      if (std::ranges::count(reduced_dims, static_cast<int64_t>(d)) == 0)
        kept.push_back(x->shape().dim(d));
    Instr* sum = make_.Make(Op::kReduce, Shape::Array(type_, kept), {x, zero_},
                            DimensionsAttrs{reduced_dims});
    sum->set_called({sum_});
    return sum;
  }

  // If the contracted dimension is last and should be split: the partial sums, then one reduction
  // of all of them. (SplitReductions would add one reduction per result.) Null otherwise.
  Instr* WithSplitDim(const std::vector<Instr*>& lhs, const std::vector<Instr*>& rhs) {
    if (reduced_dims_.front() != static_cast<int64_t>(batch_.size())) return nullptr;
    SplitSizes splits = SplitRows(dot_dims_.k, dot_dims_.batch, machine_);
    if (splits.count == 1) return nullptr;
    Instr* all = SplitSums(lhs, rhs, 0, splits.count, splits.size);
    if (splits.rest > 0) {
      Instr* rest = SplitSums(lhs, rhs, splits.count * splits.size, 1, splits.rest);
      all = make_.Make(Op::kConcatenate,
                       Shape::Array(type_, {dot_dims_.batch, results(), splits.count + 1}),
                       {all, rest}, DimensionAttrs{2});
    }
    return Reduced(all, {2});
  }

  // For each batch and result, the sums of `count` parts of `size`, starting at `begin`.
  Instr* SplitSums(std::vector<Instr*> lhs, std::vector<Instr*> rhs, int64_t begin, int64_t count,
                   int64_t size) {
    bool same = lhs == rhs;
    Dims dims = {dot_dims_.batch, count, size};
    auto cut = [&](std::vector<Instr*>& rows) {
      for (Instr*& row : rows) {
        row = make_.Reshaped(row, {dot_dims_.batch, dot_dims_.k});
        row = Sliced(row, {0, begin}, {dot_dims_.batch, begin + count * size});
        row = make_.Reshaped(row, dims);
      }
    };
    cut(lhs);
    if (same) rhs = lhs;
    if (!same) cut(rhs);
    std::vector<Instr*> sums = SumsOf(lhs, rhs, dims, {2});
    for (Instr*& sum : sums) sum = make_.Reshaped(sum, {dot_dims_.batch, 1, count});
    return Joined(std::move(sums), 1);
  }

  // Concatenates the results of each batch.
  Instr* Beside(std::vector<Instr*> sums) {
    Dims dims = batch_;
    dims.push_back(1);
    for (Instr*& sum : sums) sum = make_.Reshaped(sum, dims);
    return Joined(std::move(sums), static_cast<int64_t>(dims.size()) - 1);
  }

  Instr* Joined(std::vector<Instr*> concat_operands, int64_t along) {
    if (concat_operands.size() == 1) return concat_operands[0];
    Dims dims = concat_operands[0]->shape().dims();
    dims[static_cast<size_t>(along)] *= static_cast<int64_t>(concat_operands.size());
    return make_.Make(Op::kConcatenate, Shape::Array(type_, dims), std::move(concat_operands),
                      DimensionAttrs{along});
  }

  Instr* Sliced(Instr* x, const Dims& from, const Dims& to) {
    Dims dims;
    for (size_t d = 0; d < from.size(); ++d) dims.push_back(to[d] - from[d]);
    if (dims == x->shape().dims()) return x;
    return make_.Make(Op::kSlice, Shape::Array(x->shape().type(), dims), {x},
                      SliceAttrs{from, to, Dims(dims.size(), 1)});
  }

  Instr& dot_;
  const Machine& machine_;
  DotDimensions dot_dims_;
  Editor make_;
  Dims shared_, batch_,
      reduced_dims_;  // sizes of the common dimensions; which of those are contracted
  ElementType type_{};
  Computation* sum_ = nullptr;
  Instr* zero_ = nullptr;
};

}  // namespace

// Record contraction.split-k. SplitReductions splits the other reductions.
Result<Changed> SplitK(Module& module, PassContext& context) {
  return EditComputations(module, [&](Computation& computation) {
    bool changed = false;
    for (Instr* instr : computation.Instrs()) {
      if (instr->op() != Op::kDot || instr->has_extras()) continue;
      SplitKDot product(*instr, context.machine());
      if (!product.IsOne()) continue;
      context.Accepted("contraction.split-k", *instr, nullptr,
                       std::to_string(product.results()) + " sums of a batch");
      product.Write();
      changed = true;
    }
    return changed;
  });
}

}  // namespace tokamak
