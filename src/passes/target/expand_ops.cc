#include "passes/target/expand_ops.h"

#include <algorithm>

#include "cost/machine.h"
#include "gen/region.h"
#include "passes/passes.h"
#include "rewrite/edit_computations.h"
#include "rewrite/editor.h"

namespace tokamak {
namespace {

bool IsEmpty(const Instr* instr) {
  const Shape& shape = instr->shape();
  return shape.IsStaticArray() && shape.ElementCount() == 0;
}

Shape PlainShape(const Shape& shape) {
  return Shape::Array(shape.type(), shape.dims());
}

// Replaces the results by broadcasts of the scalar operands `first`, `first` + 1 ...
bool BroadcastScalars(Instr& instr, size_t first) {
  Editor make(instr);
  std::vector<Instr*> results;
  for (const Shape& part : ResultShapesOf(instr.shape())) {
    Instr* scalar = instr.operand(first + results.size());
    if (!IsPlainArray(part) || scalar->shape().type() != part.type()) return false;
    results.push_back(scalar);
  }
  std::vector<Shape> parts = ResultShapesOf(instr.shape());
  for (size_t i = 0; i < results.size(); ++i)
    results[i] = make.Broadcast(results[i], PlainShape(parts[i]));
  if (instr.shape().IsTuple()) {
    make.Replace(make.Make(Op::kTuple, instr.shape(), results));
  } else {
    make.Replace(results[0]);
  }
  return true;
}

bool BroadcastZero(Instr& instr) {
  if (!IsPlainArray(instr.shape())) return false;
  Editor make(instr);
  Instr* zero = make.Constant(Literal::Scalar(instr.shape().type(), 0));
  make.Replace(make.Broadcast(zero, PlainShape(instr.shape())));
  return true;
}

bool LeaveOutEmpty(Instr& concatenate) {
  std::vector<Instr*> parts;
  for (Instr* operand : concatenate.operands())
    if (!IsEmpty(operand)) parts.push_back(operand);
  if (parts.empty() || parts.size() == concatenate.operand_count()) return false;
  Editor make(concatenate);
  if (parts.size() == 1 && parts[0]->shape() == concatenate.shape()) {
    make.Replace(parts[0]);
  } else {
    make.Replace(make.Make(Op::kConcatenate, concatenate.shape(), parts, concatenate.attrs()));
  }
  return true;
}

}  // namespace

int64_t WindowResults(const WindowDim& dim, int64_t size) {
  int64_t padded = (size - 1) * dim.base_dilation + 1 + dim.pad_low + dim.pad_high;
  int64_t window = (dim.size - 1) * dim.window_dilation + 1;
  return padded < window ? 0 : (padded - window) / dim.stride + 1;
}

bool ExpandEmpty(Instr& instr) {
  bool any = false;
  for (const Instr* operand : instr.operands()) any = any || IsEmpty(operand);
  if (!any || (instr.shape().IsArray() && IsEmpty(&instr))) return false;
  size_t several = (instr.operand_count() - instr.captures()) / 2;
  switch (instr.op()) {
    case Op::kReduce:
    case Op::kReduceWindow:
      return BroadcastScalars(instr, several);
    case Op::kSelectAndScatter:
      return BroadcastScalars(instr, 2);
    case Op::kPad:
      return BroadcastScalars(instr, 1);
    case Op::kDot:
    case Op::kConvolution:
      return BroadcastZero(instr);
    case Op::kConcatenate:
      return LeaveOutEmpty(instr);
    case Op::kScatter:
    case Op::kDynamicUpdateSlice: {
      // With an empty index vector the single window is at the origin.
      const Instr* update = instr.operand(instr.op() == Op::kScatter ? 2 : 1);
      if (!instr.shape().IsArray() || !IsEmpty(update)) return false;
      Editor(instr).Replace(instr.operand(0));
      return true;
    }
    default:
      return false;
  }
}

Changed ExpandBy(std::span<const ExpansionRow> rows, Module& module, PassContext& context) {
  return EditComputations(module, [&](Computation& computation) {
    bool changed = false;
    for (bool again = true; again;) {
      again = false;
      for (Instr* instr : computation.Instrs()) {
        if (HasControlDependencies(*instr)) continue;
        std::string label = LabelOf(*instr);
        OriginId origins = instr->origins();
        auto row = std::ranges::find_if(rows, [&](const auto& r) { return r.expand(*instr); });
        if (row == rows.end()) continue;
        context.log.Add(
            {.pass = context.pass, .rule = row->rule, .subject = label, .origins = origins});
        again = changed = true;
      }
    }
    return changed;
  });
}

// Expands ops that have no kernel into other ops.
//
//   empty arrays   reductions, scatters and dots of arrays without elements
//   others         solves of narrow floats, LAPACK's cholesky, functions of complex numbers,
//                  dynamic ops whose shapes are known
//   wide windows   select-and-scatter with large windows: first the selection, then a scatter
//   overlaps       on GPUs, select-and-scatter with overlapping windows: first the selection, then
//                  comparisons with the selected elements
//   concatenates   concatenations of very many arrays: in several levels
Result<Changed> ExpandOps(Module& module, PassContext& context) {
  constexpr ExpansionRow kRows[] = {{ExpandEmpty, "expand.of-nothing"},
                                    {ExpandSelectAndScatter, "expand.wide-pick"},
                                    {ExpandNarrowSolve, "expand.narrow-solve"},
                                    {ExpandComplexAtan2, "expand.atan2"},
                                    {ExpandPotrf, "expand.potrf"},
                                    {ExpandComplexPower, "expand.power"},
                                    {ExpandKnownShape, "expand.known-shape"},
                                    {SplitConcatenate, "expand.long-concatenate"}};
  constexpr ExpansionRow kGpuRows[] = {{SelectOncePerWindow, "expand.overlapping-pick"}};
  Changed changed = ExpandBy(kRows, module, context);
  if (context.machine().is_gpu() && ExpandBy(kGpuRows, module, context) == Changed::kYes)
    changed = Changed::kYes;
  return changed;
}

}  // namespace tokamak
