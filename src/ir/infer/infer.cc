#include "ir/infer.h"

#include <array>

#include "ir/infer/families.h"
#include "ir/infer/require.h"

// Dispatches from an op to its inference function.

namespace tokamak {
namespace {

// Ops whose computations take captured values after their regular arguments.
bool MayCapture(Op op) {
  return InfoOf(op).Is(kReduction) || InfoOf(op).Is(kCollective) || op == Op::kMap ||
         op == Op::kManualComputation || op == Op::kAsyncStart || op == Op::kCustomCall;
}

Status CheckCounts(const InferInput& in) {
  if (in.captures > 0 && (in.captures > in.operands.size() || !MayCapture(in.op)))
    return MakeInferError(in, ErrorCode::kCaptureCount, "{} of {} operands are captures",
                          in.captures, in.operands.size());
  int arity = InfoOf(in.op).arity;
  if (arity < 0) return Ok();
  return RequireOperands(in, static_cast<size_t>(arity), static_cast<size_t>(arity));
}

bool AnyUnranked(const InferInput& in) {
  for (const Shape& operand : in.operands)
    if (operand.kind() == ShapeKind::kUnranked) [[unlikely]]
      return true;
  return in.written != nullptr && in.written->kind() == ShapeKind::kUnranked;
}

// Rejects nested tuples that exceed the limits for traversal.
Result<Shape> Bounded(const InferInput& in, Result<Shape> shape) {
  if (!shape.ok()) return shape;
  if (shape.value().depth() > kMaxNesting)
    return MakeInferError(in, ErrorCode::kShapeTooDeep, "result is nested deeper than {}",
                          kMaxNesting);
  if (shape.value().parts() > kMaxShapeParts)
    return MakeInferError(in, ErrorCode::kBadDimensions, "result has more than {} parts",
                          kMaxShapeParts);
  return shape;
}

using Rule = Result<Shape> (*)(const InferInput&);

constexpr std::array<Rule, kOpCount> MakeRules() {
  std::array<Rule, kOpCount> rules{};
#define TOK_OP(id, name, mlir, arity, types, shape, traits, flops, attrs, meaning) \
  if (ShapeRule::shape == ShapeRule::kSameAsOperands)                              \
    rules[static_cast<size_t>(Op::k##id)] = &InferSameAsOperands;
#include "ir/ops.def"
#define TOK_RULE(op, function) rules[static_cast<size_t>(Op::k##op)] = &Infer##function;
#include "ir/infer/rules.def"
  return rules;
}

constexpr std::array<Rule, kOpCount> kRules = MakeRules();

// Checks the table rather than the pointers: an address is not a constant expression under the
// address sanitizer.
constexpr bool EveryOpHasARule() {
  std::array<bool, kOpCount> has{};
#define TOK_OP(id, name, mlir, arity, types, shape, traits, flops, attrs, meaning) \
  has[static_cast<size_t>(Op::k##id)] = ShapeRule::shape == ShapeRule::kSameAsOperands;
#include "ir/ops.def"
#define TOK_RULE(op, function) has[static_cast<size_t>(Op::k##op)] = true;
#include "ir/infer/rules.def"
  for (bool row : has)
    if (!row) return false;
  return true;
}
static_assert(EveryOpHasARule(), "an op of ops.def needs a row in infer/rules.def");

}  // namespace

Result<Shape> InferShape(const InferInput& input) {
  TOK_RETURN_IF_ERROR(CheckCounts(input));
  // The shape of an array of unknown rank cannot be checked; the interpreter rejects it.
  if (AnyUnranked(input)) {
    TOK_TRY(const Shape* written, RequireWritten(input));
    return *written;
  }
  return Bounded(input, kRules[static_cast<size_t>(input.op)](input));
}

}  // namespace tokamak
