// Ops on integers and pred. Results wrap. Operands for which a primitive is unspecified are
// replaced.

#include "kernel/formulas/functions.h"

namespace tokamak::formulas {
namespace {

Scalar Unsigned(Scalar x) {
  return x.BitsAs(BitsTypeOf(x.type()));
}
Scalar SignedBits(Scalar x) {
  switch (InfoOf(x.type()).bits) {
    case 64:
      return x.BitsAs(ScalarType::kS64);
    case 32:
      return x.BitsAs(ScalarType::kS32);
    case 16:
      return x.BitsAs(ScalarType::kS16);
    default:
      return x.BitsAs(ScalarType::kS8);
  }
}

Scalar Divide(Scalar x, Scalar y) {
  Scalar one = x.Like(1);
  if (!IsSigned(x.type())) {
    Scalar is_zero = y == 0;
    Scalar ones = x.builder().ConstantBits(x.type(), BitsOfInt(x.type(), -1));
    return Choose(is_zero, ones, x / Choose(is_zero, one, y));
  }
  Scalar is_zero = y == 0, is_minus = y == -1;
  Scalar quotient = x / Choose(is_zero | is_minus, one, y);
  return Choose(is_zero, x.Like(-1), Choose(is_minus, -x, quotient));
}

Scalar Remainder(Scalar x, Scalar y) {
  Scalar is_zero = y == 0;
  Scalar safe = IsSigned(x.type()) ? is_zero | (y == -1) : is_zero;
  return Choose(is_zero, x, x % Choose(safe, x.Like(1), y));
}

// Exponentiation by squaring, one bit of y per step. Constant bits of y need only the squarings.
Scalar IntegerPower(Scalar x, Scalar y) {
  int bits = InfoOf(x.type()).bits;
  Scalar base = Unsigned(x), exponent = Unsigned(y), result = base.Like(1);
  for (int i = 0; i < bits; ++i) {
    Scalar is_set = (exponent & base.builder().ConstantBits(base.type(), Bits{1} << i)) != 0;
    result = Choose(is_set, result * base, result);
    if (i + 1 < bits) base = base * base;
  }
  result = result.BitsAs(x.type());
  if (!IsSigned(x.type())) return result;
  // A negative power of an integer is 0, except for the bases 1 and -1.
  Scalar odd = (y & y.Like(1)) != 0;
  Scalar inverse = Choose(x == 1, x, Choose(x == -1, Choose(odd, x, x.Like(1)), x.Like(0)));
  return Choose(y < 0, inverse, result);
}

// `bits` is the width of the element, which may be less than that of its scalar.
Scalar ShiftLeft(Scalar x, Scalar y, int bits) {
  Scalar shift = Unsigned(y), fits = shift < bits;
  Scalar moved = Unsigned(x) << Choose(fits, shift, shift.Like(0));
  return Choose(fits, moved, shift.Like(0)).BitsAs(x.type());
}
Scalar ShiftRightLogical(Scalar x, Scalar y, int bits) {
  Scalar shift = Unsigned(y), fits = shift < bits, from = Unsigned(x);
  if (bits < 8) from = from & from.Like((1 << bits) - 1);
  Scalar moved = from >> Choose(fits, shift, shift.Like(0));
  return Choose(fits, moved, shift.Like(0)).BitsAs(x.type());
}
Scalar ShiftRightArithmetic(Scalar x, Scalar y, int bits) {
  Scalar shift = LesserOf(Unsigned(y), Unsigned(y).Like(bits - 1)), from = SignedBits(x);
  if (bits < 8) from = (from << from.Like(8 - bits)) >> from.Like(8 - bits);
  return (from >> shift.BitsAs(from.type())).BitsAs(x.type());
}

Scalar OwnBits(Scalar x, int bits) {
  Scalar own = Unsigned(x);
  return bits < 8 ? own & own.Like((1 << bits) - 1) : own;
}

std::optional<Scalar> Unary(Op op, int bits, Scalar x) {
  switch (op) {
    case Op::kAbs:
      return IsSigned(x.type()) ? Choose(x < 0, -x, x) : x;
    case Op::kNegate:
      return -x;
    case Op::kSign: {
      Scalar positive = Choose(x > 0, x.Like(1), x.Like(0));
      return IsSigned(x.type()) ? Choose(x < 0, x.Like(-1), positive) : positive;
    }
    case Op::kNot:
      return x ^ x.builder().ConstantBits(x.type(), BitsOfInt(x.type(), -1));
    case Op::kPopulationCount:
      return x.builder().Make(Prim::kPopCount, {OwnBits(x, bits)}).BitsAs(x.type());
    case Op::kCountLeadingZeros: {
      Scalar zeros = x.builder().Make(Prim::kLeadingZeros, {OwnBits(x, bits)});
      return (bits < 8 ? zeros - (8 - bits) : zeros).BitsAs(x.type());
    }
    case Op::kConj:
      return x;
    case Op::kSquare:
      return x * x;
    default:
      return std::nullopt;
  }
}

// The upper half of the product. The product of types narrower than 8 bits fits 8 bits.
Scalar MultiplyHigh(Scalar x, Scalar y, int bits) {
  if (bits >= 8) return x.builder().Make(Prim::kMulHigh, {x, y});
  Scalar product = x * y, by = x.Like(bits);
  return IsSigned(x.type()) ? ShiftRightArithmetic(product, by, 8)
                            : ShiftRightLogical(product, by, 8);
}

std::optional<Scalar> Binary(Op op, int bits, Scalar x, Scalar y) {
  switch (op) {
    case Op::kAdd:
      return x + y;
    case Op::kSubtract:
      return x - y;
    case Op::kMultiply:
      return x * y;
    case Op::kMultiplyHigh:
      return MultiplyHigh(x, y, bits);
    case Op::kDivide:
      return Divide(x, y);
    case Op::kRemainder:
      return Remainder(x, y);
    case Op::kPower:
      return IntegerPower(x, y);
    case Op::kMaximum:
      return GreaterOf(x, y);
    case Op::kMinimum:
      return LesserOf(x, y);
    case Op::kAnd:
      return x & y;
    case Op::kOr:
      return x | y;
    case Op::kXor:
      return x ^ y;
    case Op::kShiftLeft:
      return ShiftLeft(x, y, bits);
    case Op::kShiftRightLogical:
      return ShiftRightLogical(x, y, bits);
    case Op::kShiftRightArithmetic:
      return ShiftRightArithmetic(x, y, bits);
    default:
      return std::nullopt;
  }
}

}  // namespace

std::optional<Scalar> IntegerOp(Op op, ElementType type, std::span<const Element> operands) {
  int bits = InfoOf(type).bits;
  Scalar x = operands[0][0];
  // A negative shift amount counts as too large: it is compared as an unsigned number of its type.
  std::optional<Scalar> result;
  if (operands.size() == 1) {
    result = Unary(op, bits, x);
  } else if (bits < 8 && (op == Op::kShiftLeft || op == Op::kShiftRightLogical ||
                          op == Op::kShiftRightArithmetic)) {
    result = Binary(op, bits, x, OwnBits(operands[1][0], bits).BitsAs(x.type()));
  } else {
    result = Binary(op, bits, x, operands[1][0]);
  }
  if (!result) return std::nullopt;
  return WrapTo(type, *result);
}

std::optional<Scalar> PredOp(Op op, std::span<const Element> operands) {
  Scalar x = operands[0][0], y = operands.size() > 1 ? operands[1][0] : Scalar();
  switch (op) {
    case Op::kNot:
      return !x;
    case Op::kConj:
      return x;
    case Op::kAdd:
    case Op::kMaximum:
    case Op::kOr:
      return x | y;
    case Op::kMultiply:
    case Op::kMinimum:
    case Op::kAnd:
      return x & y;
    case Op::kXor:
    case Op::kSubtract:
      return x ^ y;
    default:
      return std::nullopt;
  }
}

}  // namespace tokamak::formulas
