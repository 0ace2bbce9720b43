#include "interp/body_call.h"

#include <cmath>

#include "interp/results.h"
#include "interp/scalar_ops.h"

namespace tokamak {

Value ArrayOf(Shape shape, std::span<const ScalarSlot> scalars) {
  return DispatchStorage(shape.type(), [&]<typename T>() {
    std::vector<T> elements(scalars.size());
    for (size_t i = 0; i < scalars.size(); ++i) elements[i] = scalars[i].Get<T>();
    return Value::Array(shape, std::move(elements));
  });
}

std::vector<ScalarSlot> ScalarsOf(const Value& array, ElementType as) {
  return DispatchStorage(as, [&]<typename T>() {
    std::vector<T> elements = ElementsAs<T>(array);
    std::vector<ScalarSlot> scalars(elements.size());
    for (size_t i = 0; i < scalars.size(); ++i) scalars[i].Set<T>(elements[i]);
    return scalars;
  });
}

BodyCall::BodyCall(const Computation& body, std::span<const Value> captures, Context& context,
                   ScalarBody::Narrow narrow)
    : body_(std::make_unique<ScalarBody>(body, context, narrow)) {
  const size_t own = body.parameters().size() - captures.size();
  for (size_t i = 0; i < captures.size(); ++i) body_->Bind(own + i, captures[i]);
}

Status BodyCall::Apply(std::span<const ScalarSlot> arguments, std::span<ScalarSlot> results) {
  for (size_t i = 0; i < arguments.size(); ++i) body_->in(i) = arguments[i];
  TOK_RETURN_IF_ERROR(body_->Apply());
  for (size_t i = 0; i < results.size(); ++i) results[i] = body_->out(i);
  return Ok();
}

namespace {

// The root, or the element of a one-element tuple.
const Instr* OnlyResult(const Computation& body) {
  const Instr* root = body.root();
  if (root->op() == Op::kTuple && root->operand_count() == 1) root = root->operand(0);
  return root;
}

}  // namespace

bool IsParameter(const Computation& body, int64_t number) {
  const Instr* root = OnlyResult(body);
  return root->op() == Op::kParameter && root->attrs<ParameterAttrs>().number == number;
}

std::optional<Op> CommutativeBody(const Computation& body) {
  const Instr* root = OnlyResult(body);
  if (!IsCommutative(root->op())) return std::nullopt;
  if (body.parameters().size() != 2 || root->shape().quant() != nullptr) return std::nullopt;
  // Complex numbers have no order here.
  if (IsComplex(root->shape().type()) && root->op() != Op::kAdd && root->op() != Op::kMultiply)
    return std::nullopt;
  const Instr *a = root->operand(0), *b = root->operand(1);
  const Instr *p = body.parameter(0), *q = body.parameter(1);
  if ((a == p && b == q) || (a == q && b == p)) return root->op();
  return std::nullopt;
}

template <typename T>
T Combine(Op op, T a, T b) {
  constexpr bool kIsReal = std::is_same_v<T, double>;
  constexpr bool kIsPred = std::is_same_v<T, uint8_t>;
  if (op == Op::kAdd) {
    if constexpr (kIsPred) return a | b;
    if constexpr (std::is_same_v<T, int64_t>)
      return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
    return a + b;
  }
  if (op == Op::kMultiply) {
    if constexpr (kIsPred) return a & b;
    if constexpr (std::is_same_v<T, int64_t>)
      return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
    if constexpr (std::is_same_v<T, Complex>) return ComplexBinary(op, false)(a, b);
    return a * b;
  }
  if constexpr (!std::is_same_v<T, Complex>) {
    if constexpr (kIsReal) {
      if (std::isnan(a)) return a;
      if (std::isnan(b)) return b;
      // The sign distinguishes the two zeros.
      if (a == b && op == Op::kMaximum) return std::signbit(a) ? b : a;
      if (a == b && op == Op::kMinimum) return std::signbit(a) ? a : b;
    }
    if (op == Op::kMaximum) return a > b ? a : b;
    if (op == Op::kMinimum) return a < b ? a : b;
  }
  if constexpr (!kIsReal && !std::is_same_v<T, Complex>) {
    if (op == Op::kAnd) return a & b;
    if (op == Op::kOr) return a | b;
    if (op == Op::kXor) return a ^ b;
  }
  TOK_UNREACHABLE("an op that does not combine two elements");
}
template uint8_t Combine(Op, uint8_t, uint8_t);
template int64_t Combine(Op, int64_t, int64_t);
template uint64_t Combine(Op, uint64_t, uint64_t);
template double Combine(Op, double, double);
template Complex Combine(Op, Complex, Complex);

}  // namespace tokamak
