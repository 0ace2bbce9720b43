#include "gen/gpu/dot_results.h"

#include <algorithm>

#include "gen/contract.h"
#include "gen/dot_operand.h"
#include "gen/gpu/operand_view.h"
#include "gen/gpu/tensor_tiling.h"
#include "gen/roots.h"

namespace tokamak::gpu {
namespace {

// Whether an operand is a slice of a pad in the region. The padded array is to be stored: its rows
// are aligned.
bool PadsOperand(const FusedRegion& region, const Instr& dot) {
  for (const Instr* operand : dot.operands())
    for (const Instr* view = operand; IsView(*view); view = view->operand(0))
      if (view->op() == Op::kSlice && view->operand(0)->op() == Op::kPad &&
          std::ranges::find(region.instrs, view->operand(0)) != region.instrs.end())
        return true;
  return false;
}

// Whether an operand that is multiplied along K only is transposed in the region, so that K is
// contiguous (passes/target/k_major_operands.h).
bool TransposesToKMajor(const FusedRegion& region, const Instr& dot, const Machine& machine) {
  if (!KMajorFormOf(dot, machine)) return false;
  DotDimensions dot_dims(dot);
  for (size_t i : {0, 1}) {
    const Instr* operand = dot.operand(i);
    if (operand->op() == Op::kTranspose && DotOperand(dot, dot_dims, i).k_is_minor &&
        operand->attrs<DimensionsAttrs>().dimensions.back() + 1 != operand->shape().rank() &&
        std::ranges::find(region.instrs, operand) != region.instrs.end())
      return true;
  }
  return false;
}

}  // namespace

std::string FindDot(const FusedRegion& region, const Machine& machine, const Instr*& dot) {
  for (const Instr* instr : region.instrs) {
    if (instr->op() == Op::kReduce) return "reductions of a dot's result rows need another kernel";
    if (instr->op() != Op::kDot) continue;
    if (dot != nullptr) return "it has a second contraction";
    dot = instr;
  }
  if (dot == nullptr || !CanUseContract(*dot, machine)) return "it has no contraction";
  if (PadsOperand(region, *dot)) return "its padded operand has to be in memory";
  if (TransposesToKMajor(region, *dot, machine))
    return "its transposed operand has to be in memory";
  for (const Instr* root : region.roots)
    if (!root->shape().IsArray() || IsSliceUpdate(*root) ||
        root->shape().ElementCount() != dot->shape().ElementCount())
      return "a root has another number of elements than the contraction";
  return "";
}

BoundResult BindDotResult(ElementEmitter& emitter, const Instr& dot, const DotDimensions& dot_dims,
                          const DotPosition& position, Scalar sum) {
  KernelBuilder& b = sum.builder();
  Coordinates at = position.batch_at;
  Coordinates row_at = position.row_at;
  if (row_at.empty())
    row_at = Delinearized(b, position.row, SizesAlong(dot_dims.lhs_dims, dot_dims.lhs_free));
  for (const Coordinates& more :
       {row_at, Delinearized(b, position.column, SizesAlong(dot_dims.rhs_dims, dot_dims.rhs_free))})
    at.insert(at.end(), more.begin(), more.end());
  ElementType type = dot.shape().type();
  emitter.Bind(dot, 0, at, ConvertElement(b, DotElementType(sum.type()), type, Element{sum, {}}));
  Scalar row = position.batch * b.Index(dot_dims.m) + position.row;
  Scalar linear = row * b.Index(dot_dims.n) + position.column;
  return {std::move(at), linear};
}

void StoreDotResult(ElementEmitter& emitter, const FusedRegion& region, const Instr& dot,
                    const DotDimensions& dot_dims, const DotPosition& position, Scalar sum) {
  BoundResult bound = BindDotResult(emitter, dot, dot_dims, position, sum);
  for (const Instr* root : region.roots)
    StoreContractRoot(sum.builder(), emitter, *root, dot, bound.at, bound.linear);
}

}  // namespace tokamak::gpu
