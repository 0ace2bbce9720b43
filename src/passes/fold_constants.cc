#include <algorithm>

#include <fmt/format.h>

#include "analysis/effects.h"
#include "interp/interp.h"
#include "passes/passes.h"
#include "rewrite/editor.h"
#include "rewrite/match.h"
#include "rewrite/replace.h"

namespace tokamak {
namespace {

// The remaining budget of the pass. Work is counted rather than timed, so the result is the same on
// a slow machine.
struct Budget {
  int64_t bytes, work;
};

bool IsStatic(const Shape& shape) {
  return shape.IsStaticArray() && shape.quant() == nullptr;
}

// Whether it is cheaper to recompute than to store, or already in canonical form.
bool IsSpelling(const Instr& instr) {
  return instr.op() == Op::kConstant || instr.op() == Op::kIota || instr.op() == Op::kBroadcast;
}

bool IsFoldable(const Instr& instr) {
  constexpr uint16_t kKinds = kElementwise | kDataMovement | kReduction | kContraction;
  if (IsSpelling(instr) || (instr.info().traits & kKinds) == 0 || !IsPlain(instr)) return false;
  if (instr.op() == Op::kCopy || !IsStatic(instr.shape()) || instr.operands().empty()) return false;
  return std::ranges::all_of(instr.operands(), [](const Instr* operand) {
    if (!IsStatic(operand->shape())) return false;
    return operand->op() == Op::kConstant || SplatOf(operand) != nullptr;
  });
}

// Estimated operations: elements read and written, times the operations per element of the op and
// of the computation it calls. A contraction reads its operands repeatedly.
int64_t WorkOf(const Instr& instr) {
  double elements = static_cast<double>(instr.shape().ElementCount());
  double read = 0;
  for (const Instr* operand : instr.operands())
    read += static_cast<double>(operand->shape().ElementCount());
  double each = 1 + instr.info().flops_per_element;
  for (const Computation* callee : instr.called()) each += static_cast<double>(callee->size());
  double work = (elements + read) * each;
  if (instr.info().Is(kContraction)) work = elements * (1 + read);
  if (!instr.called().empty()) work *= 20;  // one interpreter call per element
  if (instr.op() == Op::kReduceWindow || instr.op() == Op::kSelectAndScatter)
    for (const WindowDim& dim : instr.attrs<WindowAttrs>().window)
      work *= static_cast<double>(std::max<int64_t>(1, dim.size));
  return work > 1e15 ? int64_t{1} << 50 : static_cast<int64_t>(work);
}

Literal LiteralOf(const Instr& operand) {
  if (operand.op() == Op::kConstant) return operand.attrs<ConstantAttrs>().literal;
  const Literal& scalar = *SplatOf(&operand);
  auto width = static_cast<size_t>(BytesOf(scalar.type()));
  return Literal::Splat(operand.shape().WithoutLayout(), scalar.data().Window(0, width));
}

// An elementwise op of splats is a splat: evaluated once, whatever its size.
bool IsSplatMath(const Instr& instr) {
  return instr.info().Is(kElementwise) && instr.op() != Op::kMap &&
         std::ranges::all_of(instr.operands(), [&](const Instr* operand) {
           return SplatOf(operand) != nullptr &&
                  (operand->shape().dims() == instr.shape().dims() || operand->shape().IsScalar());
         });
}

// Evaluates one element of a splat with a scratch instruction.
Result<Value> EvaluateOnce(const Instr& instr) {
  Module scratch;
  Computation* computation = scratch.AddComputation("fold");
  std::vector<Instr*> parameters;
  std::vector<Value> values;
  for (const Instr* operand : instr.operands()) {
    const Literal& splat = *SplatOf(operand);
    auto width = static_cast<size_t>(BytesOf(splat.type()));
    TOK_TRY(Value value, ValueFromLiteral(Literal::Array(Shape::Scalar(splat.type()),
                                                         splat.data().Window(0, width))));
    parameters.push_back(
        computation->AppendParameter(static_cast<int64_t>(values.size()), value.shape()));
    values.push_back(std::move(value));
  }
  const Instr* once = computation->Append(instr.op(), Shape::Scalar(instr.shape().type()),
                                          parameters, instr.attrs());
  return EvaluateInstr(*once, values);
}

Result<Value> EvaluateWhole(const Instr& instr) {
  std::vector<Value> values;
  for (const Instr* operand : instr.operands()) {
    TOK_TRY(Value value, ValueFromLiteral(LiteralOf(*operand)));
    values.push_back(std::move(value));
  }
  return EvaluateInstr(instr, values);
}

Changed FoldOne(Instr* instr, Budget& budget, PassContext& context) {
  bool is_splat = IsSplatMath(*instr);
  int64_t bytes = is_splat ? BytesOf(instr->shape().type()) : instr->shape().ByteSize();
  int64_t work = is_splat ? 1 : WorkOf(*instr);
  if (bytes > context.limits.folded_bytes || bytes > budget.bytes || work > budget.work) {
    context.Rejected(
        "fold.over-budget", *instr, nullptr,
        fmt::format("{} bytes, {} operations; {} and {} are left, {} bytes at most", bytes, work,
                    budget.bytes, budget.work, context.limits.folded_bytes));
    return Changed::kNo;
  }
  Result<Value> value = is_splat ? EvaluateOnce(*instr) : EvaluateWhole(*instr);
  if (!value.ok()) return Changed::kNo;  // unsupported, or not executable in isolation
  budget.bytes -= bytes;
  budget.work -= work;
  Literal literal = LiteralFromValue(value.value());
  bool is_broadcast = is_splat && !instr->shape().IsScalar();
  Shape shape = is_broadcast ? literal.shape() : instr->shape();
  Instr* folded = Editor::Beside(*instr).Make(
      Op::kConstant, shape, {}, ConstantAttrs{literal.WithShape(shape.WithoutLayout())});
  if (is_broadcast)
    folded =
        Editor::Beside(*instr).Make(Op::kBroadcast, instr->shape(), {folded}, DimensionsAttrs{});
  if (!CanReplace(*instr, *folded, true)) {
    RemoveUnused(folded);
    return Changed::kNo;
  }
  ReplaceBy(instr, folded, true);
  context.Accepted("fold.constants", *instr, folded);
  RemoveUnused(instr);
  return Changed::kYes;
}

}  // namespace

// Constant folding. Evaluates instructions with constant operands in the interpreter, so folding
// and execution cannot disagree. Size stays bounded: a result has at most PassLimits::folded_bytes,
// and a broadcast or iota is never materialized.
Result<Changed> FoldConstants(Module& module, PassContext& context) {
  Budget budget{context.limits.folded_bytes_in_all, context.limits.folded_work};
  Changed changed = Changed::kNo;
  for (const auto& computation : module.computations())
    for (Instr* instr : computation->PostOrder())
      if (!instr->is_removed() && IsFoldable(*instr)) changed |= FoldOne(instr, budget, context);
  return changed;
}

}  // namespace tokamak
