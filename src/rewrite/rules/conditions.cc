#include "rewrite/rules/conditions.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace tokamak {

bool IsNotComplex(const m::Match& match) {
  return !IsComplex(match.type());
}
bool IsIntegralOrReal(const m::Match& match) {
  return IsInteger(match.type()) || IsReal(match.type());
}
bool IsIeee(ElementType type) {
  return type == ElementType::kF16 || type == ElementType::kBF16 || type == ElementType::kF32 ||
         type == ElementType::kF64;
}

std::optional<int64_t> IntOf(const Instr* instr) {
  const Literal* literal = SplatOf(instr);
  if (literal == nullptr || !IsInteger(literal->type())) return std::nullopt;
  return literal->IntAt(0);
}

std::optional<double> RealOf(const Instr* instr) {
  const Literal* literal = SplatOf(instr);
  if (literal == nullptr || !IsReal(literal->type())) return std::nullopt;
  return literal->DoubleAt(0);
}

std::optional<int> PowerOfTwo(const Instr* instr) {
  if (std::optional<int64_t> value = IntOf(instr)) {
    auto bits = static_cast<uint64_t>(*value);
    if (IsSigned(instr->shape().type()) && *value <= 0) return std::nullopt;
    if (!std::has_single_bit(bits)) return std::nullopt;
    return std::countr_zero(bits);
  }
  std::optional<double> value = RealOf(instr);
  if (!value || !std::isfinite(*value) || *value <= 0) return std::nullopt;
  int exponent = 0;
  if (std::frexp(*value, &exponent) != 0.5) return std::nullopt;
  return exponent - 1;
}

Instr* FilledInt(Editor& edit, const m::Match& match, int64_t value) {
  return edit.Filled(match.shape(), Literal::ScalarInt(match.type(), value));
}
Instr* WithInt(Editor& edit, const m::Match& match, Op op, Instr* x, int64_t value) {
  return edit.Make(op, {x, FilledInt(edit, match, value)});
}
Instr* IntWith(Editor& edit, const m::Match& match, Op op, int64_t value, Instr* x) {
  return edit.Make(op, {FilledInt(edit, match, value), x});
}

Instr* NegatedConstant(Editor& edit, const Instr* constant) {
  const Shape& shape = constant->shape();
  if (std::optional<int64_t> value = IntOf(constant))
    return edit.Filled(shape, Literal::ScalarInt(shape.type(), WrapSubtract(0, *value)));
  if (std::optional<double> value = RealOf(constant))
    return edit.Filled(shape, Literal::Scalar(shape.type(), -*value));
  return nullptr;
}

const Dims& DimensionsOf(const Instr* instr) {
  return instr->attrs<DimensionsAttrs>().dimensions;
}

bool IsIncreasing(const Dims& dims) {
  return std::ranges::is_sorted(dims);
}

Instr* Reshaped(Editor& edit, Instr* x, Dims dims) {
  if (x == nullptr || x->shape().dims() == dims) return x;
  Shape shape = Shape::Array(x->shape().type(), std::move(dims));
  return edit.MakeShaped(Op::kReshape, std::move(shape), {x});
}

Instr* IndexConstant(Editor& edit, ElementType type, int64_t value) {
  return edit.Constant(Literal::ScalarInt(type, value));
}

std::optional<Op> CombinerOf(const Computation& body) {
  const Instr* root = body.root();
  if (root->op() == Op::kTuple && root->operand_count() == 1) root = root->operand(0);
  if (!IsCommutative(root->op()) || body.parameters().size() != 2) return std::nullopt;
  if (IsComplex(root->shape().type()) && root->op() != Op::kAdd && root->op() != Op::kMultiply)
    return std::nullopt;
  const Instr *a = root->operand(0), *b = root->operand(1);
  const Instr *p = body.parameter(0), *q = body.parameter(1);
  if ((a == p && b == q) || (a == q && b == p)) return root->op();
  return std::nullopt;
}

bool IsExactCombiner(Op op, ElementType type) {
  if (IsInteger(type) || type == ElementType::kPred) return IsCommutative(op);
  return IsReal(type) && (op == Op::kMaximum || op == Op::kMinimum);
}

bool IsIdentityOf(Op op, const Instr* constant) {
  const Literal* literal = SplatOf(constant);
  if (literal == nullptr) return false;
  ElementType type = literal->type();
  if (type == ElementType::kPred) {
    bool value = literal->IntAt(0) != 0;
    if (op == Op::kAnd || op == Op::kMultiply || op == Op::kMinimum) return value;
    return IsCommutative(op) && !value;
  }
  if (IsInteger(type)) {
    int64_t value = literal->IntAt(0);
    if (op == Op::kAdd || op == Op::kOr || op == Op::kXor) return value == 0;
    if (op == Op::kMultiply) return value == 1;
    if (op == Op::kAnd) return Literal::ScalarInt(type, -1).BitsAt(0) == literal->BitsAt(0);
    std::optional<IntRange> range = RangeOfType(type);
    if (op == Op::kMaximum) return range ? value == range->low : value == 0;
    if (op == Op::kMinimum) return range ? value == range->high : value == -1;
    return false;
  }
  if (!IsReal(type)) return false;
  double value = literal->DoubleAt(0);
  if (op == Op::kAdd) return value == 0 && std::signbit(value);
  if (op == Op::kMultiply) return value == 1;
  if (op == Op::kMaximum) return std::isinf(value) && value < 0;
  if (op == Op::kMinimum) return std::isinf(value) && value > 0;
  return false;
}

}  // namespace tokamak
