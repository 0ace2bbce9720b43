// Leaves, tuples, calls and loops.

#include <utility>

#include "interp/evaluators.h"

namespace tokamak {
namespace {

std::vector<Value> TakeAll(std::span<const Value> operands, size_t first = 0) {
  std::vector<Value> taken;
  taken.reserve(operands.size() - first);
  for (size_t i = first; i < operands.size(); ++i) taken.push_back(TakeOperand(operands, i));
  return taken;
}

// One array unchanged, several as a tuple: the result of an op with several results.
Value AsResult(const Instr& instr, std::vector<Value> values) {
  if (!instr.shape().IsTuple() && values.size() == 1) return std::move(values[0]);
  return Value::Tuple(std::move(values));
}

}  // namespace

Result<Value> EvalParameter(const Instr& instr, std::span<const Value>, Context&) {
  return Unsupported(instr, "has no value outside of a call");
}

Result<Value> EvalConstant(const Instr& instr, std::span<const Value>, Context&) {
  TOK_TRY(Value value, ValueFromLiteral(instr.attrs<ConstantAttrs>().literal));
  // The literal holds the integers of a quantized constant; their scale is in the shape.
  if (!value.shape().IsArray()) return value;
  return value.WithShape(instr.shape().HasDynamicDims() ? instr.shape().WithDims(value.dims())
                                                        : instr.shape());
}

Result<Value> EvalTuple(const Instr&, std::span<const Value> operands, Context&) {
  return Value::Tuple(TakeAll(operands));
}

Result<Value> EvalGetTupleElement(const Instr& instr, std::span<const Value> operands, Context&) {
  return operands[0].elements()[static_cast<size_t>(instr.attrs<TupleIndexAttrs>().index)];
}

Result<Value> EvalCall(const Instr& instr, std::span<const Value> operands, Context& context) {
  return context.Call(*instr.called(0), TakeAll(operands));
}

// A composite is evaluated by its decomposition, whatever its name.
Result<Value> EvalComposite(const Instr& instr, std::span<const Value> operands, Context& context) {
  return context.Call(*instr.called(0), TakeAll(operands));
}

Result<Value> EvalFusion(const Instr& instr, std::span<const Value> operands, Context& context) {
  return context.Call(*instr.called(0), TakeAll(operands));
}

Result<Value> EvalWhile(const Instr& instr, std::span<const Value> operands, Context& context) {
  const Computation &condition = *instr.called(0), &body = *instr.called(1);
  std::vector<Value> state = TakeAll(operands);
  bool single = state.size() == 1;
  while (true) {
    TOK_TRY(Value go_on, context.Call(condition, std::span<const Value>(state)));
    if (go_on.IntAt(0) == 0) break;
    // The state is moved, so that the body can write its arrays in place.
    TOK_TRY(Value next, context.Call(body, std::move(state)));
    state.clear();
    if (single) {
      state.push_back(std::move(next));
    } else {
      for (size_t i = 0; i < next.elements().size(); ++i) state.push_back(next.TakeElement(i));
    }
  }
  return single ? std::move(state[0]) : Value::Tuple(std::move(state));
}

Result<Value> EvalConditional(const Instr& instr, std::span<const Value> operands,
                              Context& context) {
  size_t count = instr.called().size();
  size_t branch = 0;
  if (operands[0].type() == ElementType::kPred) {
    branch = operands[0].IntAt(0) != 0 ? 0 : 1;
  } else {
    int64_t index = operands[0].IntAt(0);
    branch =
        index < 0 || index >= static_cast<int64_t>(count) ? count - 1 : static_cast<size_t>(index);
  }
  size_t first = 1;
  for (size_t i = 0; i < branch; ++i) first += instr.called(i)->parameters().size();
  std::vector<Value> arguments;
  for (size_t i = 0; i < instr.called(branch)->parameters().size(); ++i)
    arguments.push_back(TakeOperand(operands, first + i));
  return context.Call(*instr.called(branch), std::move(arguments));
}

Result<Value> EvalOptimizationBarrier(const Instr& instr, std::span<const Value> operands,
                                      Context&) {
  if (operands.size() == 1) return TakeOperand(operands, 0);  // HLO: possibly a tuple
  return AsResult(instr, TakeAll(operands));
}

Result<Value> EvalAfterAll(const Instr&, std::span<const Value>, Context&) {
  return Value::Token();
}

Result<Value> EvalAddDependency(const Instr&, std::span<const Value> operands, Context&) {
  return TakeOperand(operands, 0);
}

Result<Value> EvalDomain(const Instr&, std::span<const Value> operands, Context&) {
  return TakeOperand(operands, 0);
}

}  // namespace tokamak
