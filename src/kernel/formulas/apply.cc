// Selects the formula of an op.

#include "kernel/formulas/functions.h"

namespace tokamak {
namespace formulas {
namespace {

Element One(Scalar x) {
  return {x, Scalar()};
}

// Ops on bf16 and f16 whose result needs no rounding. (Smaller types may lack -0 or a sign.)
bool IsExact(Op op) {
  switch (op) {
    case Op::kAbs:
    case Op::kNegate:
    case Op::kSign:
    case Op::kMaximum:
    case Op::kMinimum:
    case Op::kRemainder:
    case Op::kCeil:
    case Op::kFloor:
    case Op::kRoundAfz:
    case Op::kRoundEven:
    case Op::kReal:
    case Op::kImag:
    case Op::kConj:
      return true;
    default:
      return false;
  }
}

std::optional<Element> ApplyReal(const OpCall& call) {
  std::vector<Element> operands(call.operands.begin(), call.operands.end());
  // f8e8m0fnu has the exponent range of f32, so intermediate products would underflow. It has no
  // zero to represent them.
  if (call.from == ElementType::kF8E8M0FNU)
    for (Element& operand : operands) operand[0] = operand[0].As(ScalarType::kF64);
  std::optional<Scalar> result =
      call.op == Op::kFma ? FmaOp(call.type, operands) : RealOp(call.op, operands);
  if (!result) result = RoundingOp(call.op, operands[0][0]);
  if (!result) result = RealFunction(call.op, call.type, operands);
  if (!result) return std::nullopt;
  if (IsReal(call.type) && IsNarrow(call.type)) {
    bool has_room = call.type == ElementType::kBF16 || call.type == ElementType::kF16;
    if (!has_room || !IsExact(call.op)) result = RoundTo(call.type, *result);
  }
  return One(*result);
}

// min(max(low, x), high)
std::optional<Element> ApplyClamp(KernelBuilder& b, const OpCall& call) {
  Element low_x[] = {call.operands[0], call.operands[1]};
  OpCall larger{Op::kMaximum, call.type, call.type, low_x, nullptr};
  std::optional<Element> bounded = ApplyOp(b, larger);
  if (!bounded) return std::nullopt;
  Element with_high[] = {*bounded, call.operands[2]};
  OpCall smaller{Op::kMinimum, call.type, call.type, with_high, nullptr};
  return ApplyOp(b, smaller);
}

std::optional<Element> ApplySelect(const OpCall& call) {
  const Element &condition = call.operands[0], &yes = call.operands[1], &no = call.operands[2];
  Element result = One(Choose(condition[0], yes[0], no[0]));
  if (yes[1].ok()) result[1] = Choose(condition[0], yes[1], no[1]);
  return result;
}

int PackedBits(ElementType type) {
  return type == ElementType::kPred ? 8 : InfoOf(type).bits;
}

std::optional<Element> ApplyBitcast(const OpCall& call) {
  ElementType from = call.from, to = call.type;
  if (PackedBits(from) != PackedBits(to)) return std::nullopt;
  if (from == to) return call.operands[0];
  if (IsComplex(from) || IsComplex(to)) return std::nullopt;
  return One(FromPattern(to, PatternOf(from, call.operands[0][0])));
}

// Both words in a u64, the first one in the upper half.
Element ApplyThreefry(const OpCall& call) {
  auto word = [&](size_t i) { return call.operands[i][0]; };
  auto [first, second] = ThreefryWords({word(2), word(3)}, {word(0), word(1)});
  Scalar high = first.As(ScalarType::kU64), low = second.As(ScalarType::kU64);
  return One((high << high.Like(32)) | low);
}

const Attrs& AttrsOf(const OpCall& call) {
  static const Attrs nothing;
  return call.attrs == nullptr ? nothing : *call.attrs;
}

std::optional<Element> Apply(KernelBuilder& b, const OpCall& call) {
  const Element& x = call.operands[0];
  switch (call.op) {
    case Op::kConvert:
      return ConvertElement(b, call.from, call.type, x);
    case Op::kBitcastConvert:
      return ApplyBitcast(call);
    case Op::kSelect:
      return ApplySelect(call);
    case Op::kClamp:
      return ApplyClamp(b, call);
    case Op::kThreefry2x32:
      return ApplyThreefry(call);
    case Op::kComplex:
      return Element{x[0], call.operands[1][0]};
    case Op::kCompare: {
      auto holds = Compare(call.from, AttrsOf(call).As<CompareAttrs>(), x, call.operands[1]);
      return holds ? std::optional(One(*holds)) : std::nullopt;
    }
    case Op::kReducePrecision:
      return One(ReducedPrecision(call.from, x[0], AttrsOf(call).As<ReducePrecisionAttrs>()));
    case Op::kNextAfter:
      return One(NextAfter(call.from, x[0], call.operands[1][0]));
    case Op::kStochasticConvert:
      if (!IsInteger(call.type) || !IsReal(call.from)) return std::nullopt;
      return ConvertElement(b, ElementType::kF64, call.type,
                            One(StochasticConvert(call.type, x[0], call.operands[1][0])));
    default:
      break;
  }
  if (!InfoOf(call.op).Is(kElementwise) || call.operands.size() > 3) return std::nullopt;
  switch (KindOf(call.from)) {
    case TypeKind::kReal:
      return ApplyReal(call);
    case TypeKind::kComplex:
      return ComplexOp(call.op, call.operands);
    case TypeKind::kBool: {
      auto result = PredOp(call.op, call.operands);
      return result ? std::optional(One(*result)) : std::nullopt;
    }
    case TypeKind::kSigned:
    case TypeKind::kUnsigned:
      break;
  }
  auto result = IntegerOp(call.op, call.from, call.operands);
  return result ? std::optional(One(*result)) : std::nullopt;
}

}  // namespace
}  // namespace formulas

std::optional<Element> ApplyOp(KernelBuilder& b, const OpCall& call) {
  return formulas::Apply(b, call);
}

std::optional<Element> AddProduct(KernelBuilder& b, ElementType type, Element sum, Element x,
                                  Element y) {
  Element factors[2] = {x, y};
  std::optional<Element> product = ApplyOp(b, {Op::kMultiply, type, type, factors, nullptr});
  if (!product) return std::nullopt;
  Element terms[2] = {sum, *product};
  return ApplyOp(b, {Op::kAdd, type, type, terms, nullptr});
}

}  // namespace tokamak
