// Asynchronous pairs: the start does all the work, the done returns its result.

#include <utility>

#include "interp/evaluators.h"
#include "interp/slice_values.h"

namespace tokamak {
namespace {

bool GivesFuture(const Shape& shape) {
  return shape.kind() == ShapeKind::kFuture;
}

}  // namespace

// HLO's start returns ((operands), results, contexts ...). StableHLO's returns a future, stored as
// a tuple of its eventual results.
Result<Value> EvalAsyncStart(const Instr& instr, std::span<const Value> operands,
                             Context& context) {
  if (instr.called().empty()) return Unsupported(instr, "calls no computation");
  std::vector<Value> kept(operands.begin(), operands.end());
  TOK_TRY(Value result, context.Call(*instr.called(0), operands));
  if (GivesFuture(instr.shape())) return Value::Tuple({std::move(result)});
  std::vector<Value> elements{Value::Tuple(std::move(kept)), std::move(result)};
  const std::vector<Shape>& shapes = instr.shape().elements();
  for (size_t i = 2; i < shapes.size(); ++i) elements.push_back(Zeros(shapes[i]));
  return Value::Tuple(std::move(elements));
}

Result<Value> EvalAsyncUpdate(const Instr&, std::span<const Value> operands, Context&) {
  return TakeOperand(operands, 0);
}

Result<Value> EvalAsyncDone(const Instr& instr, std::span<const Value> operands, Context&) {
  size_t index = GivesFuture(instr.operand(0)->shape()) ? 0 : 1;
  if (operands[0].elements().size() <= index)
    return Unsupported(instr, "the operand is not the result of a start");
  return operands[0].elements()[index];
}

// Returns (destination, source, context).
Result<Value> EvalCopyStart(const Instr& instr, std::span<const Value> operands, Context&) {
  std::vector<Value> elements{operands[0], operands[0]};
  const std::vector<Shape>& shapes = instr.shape().elements();
  for (size_t i = 2; i < shapes.size(); ++i) elements.push_back(Zeros(shapes[i]));
  return Value::Tuple(std::move(elements));
}

Result<Value> EvalCopyDone(const Instr& instr, std::span<const Value> operands, Context&) {
  if (operands[0].elements().empty())
    return Unsupported(instr, "the operand is not the result of a start");
  return operands[0].elements()[0];
}

}  // namespace tokamak
