#include "ir/infer/families.h"
#include "ir/infer/require.h"

// Pairs of start and done ops, and communication with the host. HLO's starts return a tuple
// (operands, results, contexts ...); StableHLO's return a future.

namespace tokamak {
namespace {

// The single shape, or the tuple of several.
Shape Joined(const std::vector<Shape>& parts) {
  return parts.size() == 1 ? parts[0] : Shape::Tuple(parts);
}

bool IsTupleOf(const Shape& shape, std::span<const Shape> parts) {
  if (!shape.IsTuple() || shape.elements().size() != parts.size()) return false;
  for (size_t i = 0; i < parts.size(); ++i)
    if (!CompatibleWithDynamic(shape.elements()[i], parts[i])) return false;
  return true;
}

bool EndsInToken(const Shape& shape) {
  return shape.IsToken() ||
         (shape.IsTuple() && !shape.elements().empty() && shape.elements().back().IsToken());
}

Status RequireStartTuple(const InferInput& in, size_t least) {
  const Shape& start = in.operands[0];
  if (start.IsTuple() && start.elements().size() >= least) return Ok();
  return MakeInferError(in, ErrorCode::kAsyncStart,
                        "operand 0 must be the result of a start, is {}", ToString(start));
}

}  // namespace

Result<Shape> InferAsyncStart(const InferInput& in) {
  TOK_RETURN_IF_ERROR(RequireCalled(in, 1));
  const Computation& body = *in.called[0];
  if (body.parameters().size() != in.operands.size())
    return MakeInferError(in, ErrorCode::kArgumentCount,
                          "{} has {} parameters, but there are {} operands", NameOf(body),
                          body.parameters().size(), in.operands.size());
  for (size_t i = 0; i < in.operands.size(); ++i) {
    const Instr* parameter = body.parameters()[i];
    if (parameter == nullptr || !CompatibleWithDynamic(parameter->shape(), in.operands[i]))
      return MakeInferError(in, ErrorCode::kArgumentShape,
                            "parameter {} of {} is {}, operand {} is {}", i, NameOf(body),
                            parameter == nullptr ? "missing" : ToString(parameter->shape()), i,
                            ToString(in.operands[i]));
  }
  TOK_TRY(const Shape* written, RequireWritten(in));
  const Shape& root = RootShape(body);
  bool good = false;
  if (written->kind() == ShapeKind::kFuture) {
    good = CompatibleWithDynamic(Joined(written->elements()), root);
  } else if (written->IsTuple() && written->elements().size() >= 2) {
    good = IsTupleOf(written->elements()[0], in.operands) &&
           CompatibleWithDynamic(written->elements()[1], root);
  }
  if (good) return *written;
  return MakeInferError(in, ErrorCode::kAsyncShape, "the result is written {}, but {} returns {}",
                        ToString(*written), NameOf(body), ToString(root));
}

Result<Shape> InferAsyncUpdate(const InferInput& in) {
  if (in.operands[0].kind() != ShapeKind::kFuture) TOK_RETURN_IF_ERROR(RequireStartTuple(in, 2));
  return InferShape(in, in.operands[0]);
}

Result<Shape> InferAsyncDone(const InferInput& in) {
  const Shape& start = in.operands[0];
  if (start.kind() == ShapeKind::kFuture) return InferShape(in, Joined(start.elements()));
  TOK_RETURN_IF_ERROR(RequireStartTuple(in, 2));
  return InferShape(in, start.elements()[1]);
}

Result<Shape> InferCopyStart(const InferInput& in) {
  const Shape& x = in.operands[0];
  if (in.written == nullptr) return Shape::Tuple({x, x, Shape::Scalar(ElementType::kU32)});
  const std::vector<Shape>& parts = in.written->elements();
  if (in.written->IsTuple() && parts.size() >= 2 && CompatibleWithDynamic(parts[0], x) &&
      CompatibleWithDynamic(parts[1], x))
    return *in.written;
  return MakeInferError(in, ErrorCode::kAsyncShape,
                        "the result is written {}, but a copy of {} returns that shape twice",
                        ToString(*in.written), ToString(x));
}

Result<Shape> InferCopyDone(const InferInput& in) {
  TOK_RETURN_IF_ERROR(RequireStartTuple(in, 2));
  return InferShape(in, in.operands[0].elements()[0]);
}

// ---- host ----

namespace {

// The last operand is a token.
Status RequireLastToken(const InferInput& in) {
  TOK_RETURN_IF_ERROR(RequireOperands(in, 1, SIZE_MAX));
  return RequireToken(in, in.operands.size() - 1);
}

Result<Shape> InferEndingInToken(const InferInput& in) {
  TOK_TRY(const Shape* written, RequireWritten(in));
  if (EndsInToken(*written)) return *written;
  return MakeInferError(in, ErrorCode::kChannelShape, "the last result must be a token, written {}",
                        ToString(*written));
}

}  // namespace

Result<Shape> InferInfeed(const InferInput& in) {
  TOK_RETURN_IF_ERROR(RequireOperands(in, 0, 1));
  if (!in.operands.empty()) TOK_RETURN_IF_ERROR(RequireToken(in, 0));
  return InferEndingInToken(in);
}

Result<Shape> InferOutfeed(const InferInput& in) {
  TOK_RETURN_IF_ERROR(RequireLastToken(in));
  return InferShape(in, Shape::Token());
}

// HLO: the value, a context and a token, consumed by send-done. StableHLO: a token.
Result<Shape> InferSend(const InferInput& in) {
  TOK_RETURN_IF_ERROR(RequireLastToken(in));
  if (in.written == nullptr || in.written->IsToken()) return Shape::Token();
  const std::vector<Shape>& parts = in.written->elements();
  bool good = in.written->IsTuple() && parts.size() >= 3 && parts.back().IsToken() &&
              in.operands.size() >= 2 && CompatibleWithDynamic(parts[0], in.operands[0]);
  if (good) return *in.written;
  return MakeInferError(in, ErrorCode::kChannelShape, "result is written {}, the value sent is {}",
                        ToString(*in.written), ToString(in.operands[0]));
}

Result<Shape> InferSendDone(const InferInput& in) {
  const Shape& send = in.operands[0];
  if (!send.IsTuple() || !EndsInToken(send))
    return MakeInferError(in, ErrorCode::kAsyncStart,
                          "operand 0 must be the result of a send, is {}", ToString(send));
  return InferShape(in, Shape::Token());
}

Result<Shape> InferRecv(const InferInput& in) {
  TOK_RETURN_IF_ERROR(RequireOperands(in, 1, 1));
  TOK_RETURN_IF_ERROR(RequireToken(in, 0));
  return InferEndingInToken(in);
}

Result<Shape> InferRecvDone(const InferInput& in) {
  const Shape& recv = in.operands[0];
  if (!recv.IsTuple() || recv.elements().size() < 3 || !EndsInToken(recv))
    return MakeInferError(in, ErrorCode::kAsyncStart,
                          "operand 0 must be the result of a recv, is {}", ToString(recv));
  return InferShape(in, Shape::Tuple({recv.elements()[0], Shape::Token()}));
}

}  // namespace tokamak
