#include "ir/infer/families.h"
#include "ir/infer/require.h"

// Tuples, calls and control flow.

namespace tokamak {
namespace {

// Checks that arguments `first` .. `first + parameters` match the parameters of `callee`.
Status RequireArguments(const InferInput& in, const Computation& callee, size_t first,
                        ErrorCode code) {
  for (size_t i = 0; i < callee.parameters().size(); ++i) {
    const Instr* parameter = callee.parameters()[i];
    const Shape& given = in.operands[first + i];
    if (parameter != nullptr && CompatibleWithDynamic(parameter->shape(), given)) [[likely]]
      continue;
    return MakeInferError(in, code, "parameter {} of {} is {}, operand {} is {}", i, NameOf(callee),
                          parameter == nullptr ? "missing" : ToString(parameter->shape()),
                          first + i, ToString(given));
  }
  return Ok();
}

Status RequireParameterCount(const InferInput& in, const Computation& callee) {
  if (callee.parameters().size() == in.operands.size()) [[likely]]
    return Ok();
  return MakeInferError(in, ErrorCode::kArgumentCount,
                        "{} has {} parameters, but there are {} operands", NameOf(callee),
                        callee.parameters().size(), in.operands.size());
}

// Returns the written shape if it agrees with `shape`; either side may know sizes that the other
// does not.
Result<Shape> InferRoot(const InferInput& in, const Shape& shape, const Computation& callee) {
  if (in.written == nullptr) return shape;
  if (CompatibleWithDynamic(*in.written, shape)) [[likely]]
    return *in.written;
  return MakeInferError(in, ErrorCode::kCallResult, "the result is written {}, but {} returns {}",
                        ToString(*in.written), NameOf(callee), ToString(shape));
}

// The state of a while: its operand, or the tuple of its operands.
bool IsState(const InferInput& in, const Shape& shape) {
  if (in.operands.size() == 1) return CompatibleWithDynamic(shape, in.operands[0]);
  if (!shape.IsTuple() || shape.elements().size() != in.operands.size()) return false;
  for (size_t i = 0; i < in.operands.size(); ++i)
    if (!CompatibleWithDynamic(shape.elements()[i], in.operands[i])) return false;
  return true;
}

Shape StateShape(const InferInput& in) {
  if (in.operands.size() == 1) return in.operands[0];
  return Shape::Tuple({in.operands.begin(), in.operands.end()});
}

}  // namespace

Result<Shape> InferTuple(const InferInput& in) {
  const Shape* written = in.written;
  if (written == nullptr) return Shape::Tuple({in.operands.begin(), in.operands.end()});
  bool good = written->IsTuple() && written->elements().size() == in.operands.size();
  for (size_t i = 0; good && i < in.operands.size(); ++i)
    good = CompatibleWithDynamic(written->elements()[i], in.operands[i]);
  if (good) return *written;
  return MakeInferError(in, ErrorCode::kResultShape,
                        "the result is written {}, but the operands imply {}", ToString(*written),
                        ToString(Shape::Tuple({in.operands.begin(), in.operands.end()})));
}

Result<Shape> InferGetTupleElement(const InferInput& in) {
  const Shape& x = in.operands[0];
  if (!x.IsTuple())
    return MakeInferError(in, ErrorCode::kNotATuple, "operand 0 must be a tuple, is {}",
                          ToString(x));
  int64_t index = in.attrs.As<TupleIndexAttrs>().index;
  if (index < 0 || index >= static_cast<int64_t>(x.elements().size()))
    return MakeInferError(in, ErrorCode::kTupleIndex,
                          "index {} is out of range, {} has {} elements", index, ToString(x),
                          x.elements().size());
  return InferShape(in, x.elements()[static_cast<size_t>(index)]);
}

Result<Shape> InferCall(const InferInput& in) {
  // A composite may have additional regions (chlo.scan) after its decomposition.
  if (in.op != Op::kComposite || in.called.empty()) TOK_RETURN_IF_ERROR(RequireCalled(in, 1));
  const Computation& callee = *in.called[0];
  TOK_RETURN_IF_ERROR(RequireParameterCount(in, callee));
  TOK_RETURN_IF_ERROR(RequireArguments(in, callee, 0, ErrorCode::kArgumentShape));
  return InferRoot(in, RootShape(callee), callee);
}

Result<Shape> InferWhile(const InferInput& in) {
  TOK_RETURN_IF_ERROR(RequireCalled(in, 2));
  const Computation &condition = *in.called[0], &body = *in.called[1];
  for (const Computation* callee : {&condition, &body}) {
    TOK_RETURN_IF_ERROR(RequireParameterCount(in, *callee));
    TOK_RETURN_IF_ERROR(RequireArguments(in, *callee, 0, ErrorCode::kArgumentShape));
  }
  const Shape& goes_on = RootShape(condition);
  if (!goes_on.IsScalar() || goes_on.type() != ElementType::kPred)
    return MakeInferError(in, ErrorCode::kWhileCondition,
                          "the condition {} must return pred[], returns {}", NameOf(condition),
                          ToString(goes_on));
  if (!IsState(in, RootShape(body)))
    return MakeInferError(in, ErrorCode::kWhileState, "the state is {}, but the body {} returns {}",
                          ToString(StateShape(in)), NameOf(body), ToString(RootShape(body)));
  if (in.written == nullptr) return StateShape(in);
  if (IsState(in, *in.written)) return *in.written;
  return MakeInferError(in, ErrorCode::kWhileState, "result is written {}, the state is {}",
                        ToString(*in.written), ToString(StateShape(in)));
}

Result<Shape> InferConditional(const InferInput& in) {
  TOK_RETURN_IF_ERROR(RequireOperands(in, 1, SIZE_MAX));
  const Shape& index = in.operands[0];
  bool is_pred = index.IsScalar() && index.type() == ElementType::kPred;
  if (!is_pred && (!index.IsScalar() || index.type() != ElementType::kS32))
    return MakeInferError(in, ErrorCode::kBranchIndex, "operand 0 must be pred[] or s32[], is {}",
                          ToString(index));
  if (in.called.empty() || (is_pred && in.called.size() != 2))
    return MakeInferError(in, ErrorCode::kBranchCount, "{} branches, expected {}", in.called.size(),
                          is_pred ? "2" : "1 or more");
  size_t next = 1;
  for (const Computation* branch : in.called) {
    size_t count = branch->parameters().size();
    if (next + count > in.operands.size())
      return MakeInferError(in, ErrorCode::kBranchArguments,
                            "branch {} has {} parameters, {} operands are left", NameOf(*branch),
                            count, in.operands.size() - next);
    TOK_RETURN_IF_ERROR(RequireArguments(in, *branch, next, ErrorCode::kBranchArguments));
    next += count;
  }
  if (next != in.operands.size())
    return MakeInferError(in, ErrorCode::kBranchArguments,
                          "{} operands, but the branches have {} parameters", in.operands.size(),
                          next);
  const Shape& first = RootShape(*in.called[0]);
  for (const Computation* branch : in.called.subspan(1)) {
    if (!CompatibleWithDynamic(RootShape(*branch), first))
      return MakeInferError(in, ErrorCode::kBranchResults,
                            "branch {} returns {}, branch {} returns {}", NameOf(*in.called[0]),
                            ToString(first), NameOf(*branch), ToString(RootShape(*branch)));
  }
  return InferRoot(in, first, *in.called[0]);
}

Result<Shape> InferCustomCall(const InferInput& in) {
  TOK_TRY(const Shape* written, RequireWritten(in));
  return *written;
}

Result<Shape> InferOptimizationBarrier(const InferInput& in) {
  if (in.operands.size() == 1) return InferShape(in, in.operands[0]);
  return InferTuple(in);
}

Result<Shape> InferAfterAll(const InferInput& in) {
  for (size_t i = 0; i < in.operands.size(); ++i) TOK_RETURN_IF_ERROR(RequireToken(in, i));
  return InferShape(in, Shape::Token());
}

Result<Shape> InferAddDependency(const InferInput& in) {
  TOK_RETURN_IF_ERROR(RequireToken(in, 1));
  return InferShape(in, in.operands[0]);
}

}  // namespace tokamak
