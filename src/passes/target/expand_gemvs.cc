#include <algorithm>
#include <unordered_set>

#include "gen/dot_dimensions.h"
#include "gen/element.h"
#include "gen/region.h"
#include "gen/whole_loop.h"
#include "passes/passes.h"
#include "rewrite/edit_computations.h"
#include "rewrite/editor.h"

namespace tokamak {
namespace {

// kLeastRow: minimum row elements. Chosen: shorter rows do not fill a vector. kMostDeep: maximum
// column length. Chosen: columns are accumulated sequentially, so rounding errors grow with it.
constexpr int64_t kLeastRow = 8, kMostDeep = 16384;

class RowProduct {
 public:
  explicit RowProduct(Instr& dot)
      : dot_(dot), dot_dims_(dot), attrs_(dot_dims_.attrs), make_(dot) {}

  // Whether the dot is such a product. In a product of two vectors either is the matrix.
  bool Find() {
    return IsFit() && ((dot_dims_.n == 1 && Choose(0)) || (dot_dims_.m == 1 && Choose(1)));
  }

  void Write() {
    ElementType type = AccumulatorElementType(dot_.shape().type());
    Instr* matrix = make_.Converted(dot_.operand(matrix_), type);
    const Dims dims = matrix->shape().dims();
    Instr* vector = make_.Reshaped(make_.Converted(dot_.operand(1 - matrix_), type),
                                   SizesAlong(dims, broadcast_dims_));
    Shape all = Shape::Array(type, dims);
    vector = make_.Make(Op::kBroadcast, all, {vector}, DimensionsAttrs{broadcast_dims_});
    Instr* products = make_.Make(Op::kMultiply, all, {matrix, vector});
    Dims row = matrix_ == 0 ? attrs_.lhs_contracting : attrs_.rhs_contracting, kept;
    for (size_t d = 0; d < dims.size(); ++d)
      if (std::ranges::find(row, static_cast<int64_t>(d)) == row.end()) kept.push_back(dims[d]);
    Instr* sum = make_.Make(Op::kReduce, Shape::Array(type, kept),
                            {products, make_.Constant(Literal::Scalar(type, 0))},
                            DimensionsAttrs{std::move(row)});
    sum->set_called({AdditionFor(dot_, type)});
    make_.Replace(make_.Reshaped(make_.Converted(sum, dot_.shape().type()), dot_.shape().dims()));
  }

 private:
  bool IsFit() const {
    ElementType type = dot_.shape().type();
    if (!IsPlainArray(dot_.shape()) || !IsReal(type) || dot_dims_.IsEmpty()) return false;
    for (const Instr* operand : dot_.operands())
      if (!IsPlainArray(operand->shape()) || !IsReal(operand->shape().type())) return false;
    return dot_dims_.k >= kLeastRow;
  }

  // Whether this operand is a matrix (batch, results, row) or (batch, row, results), and the other
  // one a vector that can be broadcast over it.
  bool Choose(size_t matrix) {
    const Dims& batch = matrix == 0 ? attrs_.lhs_batch : attrs_.rhs_batch;
    const Dims& row = matrix == 0 ? attrs_.lhs_contracting : attrs_.rhs_contracting;
    const Dims& free = matrix == 0 ? dot_dims_.lhs_free : dot_dims_.rhs_free;
    auto is_sorted = [&](const Dims& first, const Dims& second) {
      Dims order = batch;
      order.insert(order.end(), first.begin(), first.end());
      order.insert(order.end(), second.begin(), second.end());
      return std::ranges::is_sorted(order);
    };
    bool in_columns =
        dot_dims_.m * dot_dims_.n >= kLeastRow && dot_dims_.k <= kMostDeep && is_sorted(row, free);
    if (!in_columns && !is_sorted(free, row)) return false;
    matrix_ = matrix;
    broadcast_dims_.clear();
    const Dims& of_batch = matrix == 0 ? attrs_.rhs_batch : attrs_.lhs_batch;
    const Dims& of_row = matrix == 0 ? attrs_.rhs_contracting : attrs_.lhs_contracting;
    size_t rank = dot_.operand(1 - matrix)->shape().dims().size();
    for (size_t d = 0; d < rank; ++d) {
      auto at = static_cast<int64_t>(d);
      if (auto it = std::ranges::find(of_batch, at); it != of_batch.end())
        broadcast_dims_.push_back(batch[static_cast<size_t>(it - of_batch.begin())]);
      else if (auto to = std::ranges::find(of_row, at); to != of_row.end())
        broadcast_dims_.push_back(row[static_cast<size_t>(to - of_row.begin())]);
    }
    return std::ranges::is_sorted(broadcast_dims_);
  }

  Instr& dot_;
  DotDimensions dot_dims_;
  const DotAttrs& attrs_;
  Editor make_;
  size_t matrix_ = 0;
  Dims broadcast_dims_;  // dimensions of the matrix that the vector has
};

bool MayBeRowProduct(const Instr& instr) {
  return instr.op() == Op::kDot && !instr.has_extras();
}

int64_t GemvWorkOf(const Instr& dot) {
  DotDimensions dot_dims(dot);
  return dot_dims.batch * dot_dims.m * dot_dims.n * dot_dims.k;
}

// Whether it contains row products with at least this many multiplications.
bool HasRowProducts(const Computation& computation, int64_t least = 0) {
  return std::ranges::any_of(computation.Instrs(), [&](Instr* instr) {
    return (MayBeRowProduct(*instr) && GemvWorkOf(*instr) >= least && RowProduct(*instr).Find()) ||
           std::ranges::any_of(instr->called(),
                               [&](Computation* called) { return HasRowProducts(*called, least); });
  });
}

void AddCalled(const Instr& instr, std::unordered_set<const Computation*>& to) {
  for (const Computation* called : instr.called()) {
    to.insert(called);
    for (const Instr* inner : called->Instrs()) AddCalled(*inner, to);
  }
}

// Whether a whole-loop kernel could not vectorize its products, because it has one point only.
bool IsSlowWithOnePoint(const Instr& loop) {
  // Multiplications per row product. Chosen: with fewer, summing over the lanes of a vector costs
  // more than the vector loads save.
  constexpr int64_t kWorthVectors = 128;
  return WholeLoopRegionOf(loop).independence.Points() == 1 &&
         HasRowProducts(*loop.called(1), kWorthVectors);
}

// Computations called by loops that become whole-loop kernels. Those kernels generate code for dots
// but not for long reductions.
std::unordered_set<const Computation*> InLoopKernels(const Module& module, const Machine& machine) {
  std::unordered_set<const Computation*> found;
  for (const auto& computation : module.computations())
    for (const Instr* instr : computation->Instrs()) {
      if (instr->op() != Op::kWhile || found.contains(instr->called(1)) ||
          !HasRowProducts(*instr->called(1)))
        continue;
      if (CanBuildWholeLoop(*instr, machine) && !IsSlowWithOnePoint(*instr))
        AddCalled(*instr, found);
    }
  return found;
}

}  // namespace

// On CPUs, matrix-vector products become
//
//   reduce(multiply(matrix, broadcast(vector)))
//
// which reads the matrix in its own layout and fuses with its producers and consumers. If the
// contracted dimension is contiguous, the reduction runs along rows. (As a dot, lanes would hold
// adjacent results, whose factors are a row apart: (16,64) by (16,40,64) takes 57 us instead of 8.)
// Otherwise it runs along columns. A library call is slower. Matrix by vector and vector by matrix,
// this pass against the library: Neoverse V1 with 2 threads, 128 x 128: 1.1 and 1.0 us against 1.9;
// 2048 x 2048: 220 and 280 us against 236 and 1042; Emerald Rapids with 16 threads: 24 and 46 us
// against 102 and 158. The library would also require narrow types to be widened in memory. Sums
// accumulate in a wide type and are rounded once, as in a dot. Record contraction.rows.
Result<Changed> ExpandGemvs(Module& module, PassContext& context) {
  std::unordered_set<const Computation*> in_kernels = InLoopKernels(module, context.machine());
  return EditComputations(module, [&](Computation& computation) {
    if (in_kernels.contains(&computation)) return false;
    bool changed = false;
    for (Instr* instr : computation.Instrs()) {
      if (!MayBeRowProduct(*instr)) continue;
      RowProduct product(*instr);
      if (!product.Find()) continue;
      context.Accepted("contraction.rows", *instr, nullptr,
                       "a product with a vector is reduced in the memory order of its matrix");
      product.Write();
      changed = true;
    }
    return changed;
  });
}

}  // namespace tokamak
