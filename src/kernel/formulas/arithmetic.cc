// Operations on reals that are exact or correctly rounded.

#include <cmath>
#include <limits>

#include "kernel/formulas/functions.h"

namespace tokamak::formulas {
namespace {

const ScalarNode& NodeOf(Scalar x) {
  return x.builder().kernel().node(x.id());
}
bool IsConstant(Scalar x) {
  return NodeOf(x).prim == Prim::kConst;
}
double ValueOf(Scalar constant) {
  return DoubleOfBits(constant.type(), NodeOf(constant).bits);
}

Scalar BitsOf(Scalar x) {
  return x.BitsAs(BitsTypeOf(x.type()));
}

// With a constant, one comparison suffices: equal numbers differ only in the sign of zero, and the
// sign of the constant is known.
Scalar MaximumWith(Scalar x, Scalar constant) {
  double value = ValueOf(constant);
  Scalar takes = value == 0 && !std::signbit(value) ? x <= constant : x < constant;
  return Choose(takes, constant, x);
}
Scalar MinimumWith(Scalar x, Scalar constant) {
  double value = ValueOf(constant);
  Scalar takes = value == 0 && std::signbit(value) ? constant <= x : constant < x;
  return Choose(takes, constant, x);
}

// Exact x - y trunc(x / y) for f32, computed in f64, for 0 < y <= x. The quotient has up to 277
// bits. Each step removes 49 bits with a quotient that is off by at most one, and each remainder is
// exact in f64 (a multiple of the unit of y or of x).
Scalar RemainderOfF32(Scalar size, Scalar divisor) {
  Scalar rest = size.As(ScalarType::kF64), y = divisor.As(ScalarType::kF64);
  Scalar inverse = 1 / y;
  for (int shift = 245; shift >= 0; shift -= 49) {
    Scalar by = y * std::ldexp(1.0, shift);
    Scalar quotient = TruncOf(rest * (inverse * std::ldexp(1.0, -shift)));
    rest = Fma(-quotient, by, rest);
    rest = Choose(rest < 0, rest + by, rest);
    rest = Choose(rest >= by, rest - by, rest);
  }
  return rest.As(ScalarType::kF32);
}

// m and e with x = m 2^e, where m is an integer below 2^53 (as an f64), for x > 0.
struct Split {
  Scalar mantissa, exponent;
};
Scalar Wide(Scalar like, int64_t value) {
  return like.builder().ConstantBits(ScalarType::kS64, static_cast<Bits>(value));
}
Split SplitOf(Scalar x) {
  Scalar is_small = x < std::numeric_limits<double>::min();
  Scalar bits = Choose(is_small, x * 0x1p54, x).BitsAs(ScalarType::kS64);
  Scalar field = bits >> Wide(x, 52);
  Scalar mantissa = (bits & Wide(x, (int64_t{1} << 52) - 1)) | Wide(x, int64_t{1023 + 52} << 52);
  Scalar exponent = field - Choose(is_small, Wide(x, 1075 + 54), Wide(x, 1075));
  return {mantissa.BitsAs(ScalarType::kF64), exponent};
}
Scalar PowerOfTwo(Scalar exponent) {  // exponent: an s64 in -1022 .. 1023
  return ((exponent + Wide(exponent, 1023)) << Wide(exponent, 52)).BitsAs(ScalarType::kF64);
}

// The remainder for f64, whose quotient has up to 2098 bits: r 2^n mod m for 53-bit integers r and
// m, 48 of the n bits at a time. The quotient is rounded to nearest, so the remainder is at most
// slightly more than m / 2, which is exact in f64.
Scalar RemainderOfF64(Scalar size, Scalar divisor) {
  Split x = SplitOf(size), y = SplitOf(divisor);
  Scalar modulus = y.mantissa, inverse = 1 / modulus;
  Scalar rest = x.mantissa, left = x.exponent - y.exponent;
  Scalar none = Wide(size, 0), most = Wide(size, 48);
  auto reduce = [&](Scalar value) {
    Scalar quotient = RoundEvenOf(value * inverse);
    Scalar next = Fma(-quotient, modulus, value);
    return Choose(next < 0, next + modulus, next);
  };
  rest = reduce(rest);
  for (int done = 0; done < 2112; done += 48) {
    Scalar step = GreaterOf(LesserOf(left, most), none);
    rest = reduce(rest * PowerOfTwo(step));
    left = left - step;
  }
  // Scale back to the exponent of y in two steps, so that only the last one can round, and only an
  // exact value.
  Scalar half = y.exponent >> Wide(size, 1);
  return (rest * PowerOfTwo(half)) * PowerOfTwo(y.exponent - half);
}

bool IsF32OfGpu(Scalar x) {
  return x.builder().dialect() == Dialect::kGpu && x.type() == ScalarType::kF32;
}

}  // namespace

Scalar NotANumber(Scalar like) {
  return like.Like(std::numeric_limits<double>::quiet_NaN());
}
Scalar Infinity(Scalar like) {
  return like.Like(std::numeric_limits<double>::infinity());
}
Scalar IsNan(Scalar x) {
  return x != x;
}

bool HasApproximations(Scalar x) {
  return IsF32OfGpu(x);
}
Scalar ApproximateQuotient(Scalar x, Scalar y) {
  if (!HasApproximations(y)) return x / y;
  Scalar inverse = y.builder().Make(Prim::kInverse, {y}), near = x * inverse;
  return Fma(Fma(-near, y, x), inverse, near);
}

// Equal numbers and NaNs are combined by a bitwise or, which preserves NaN and the sign of -0.
Scalar MinimumOf(Scalar x, Scalar y) {
  if (IsF32OfGpu(x)) return x.builder().Make(Prim::kMinimum, {x, y});
  if (IsConstant(x)) std::swap(x, y);
  if (IsConstant(y) && !std::isnan(ValueOf(y))) return MinimumWith(x, y);
  Scalar both = (BitsOf(x) | BitsOf(y)).BitsAs(x.type());
  return Choose(x < y, x, Choose(y < x, y, both));
}
Scalar MaximumOf(Scalar x, Scalar y) {
  if (IsF32OfGpu(x)) return x.builder().Make(Prim::kMaximum, {x, y});
  if (IsConstant(x)) std::swap(x, y);
  if (IsConstant(y) && !std::isnan(ValueOf(y))) return MaximumWith(x, y);
  Scalar both = -(BitsOf(-x) | BitsOf(-y)).BitsAs(x.type());
  return Choose(y < x, x, Choose(x < y, y, both));
}

Scalar SignOf(Scalar x) {
  return Choose(AbsOf(x) > 0, CopySign(x.Like(1), x), x);
}

Scalar RemainderOf(Scalar x, Scalar y) {
  Scalar size = AbsOf(x), divisor = AbsOf(y);
  Scalar is_small = size < divisor;
  // Replaces operands for which the division is unspecified (NaN, zero, infinity). The result of
  // those lanes is not used.
  Scalar fits = (divisor > 0) & (size < Infinity(x)) & (divisor <= size);
  Scalar safe_x = Choose(fits, size, x.Like(1)), safe_y = Choose(fits, divisor, x.Like(1));
  Scalar rest = x.type() == ScalarType::kF64 ? RemainderOfF64(safe_x, safe_y)
                                             : RemainderOfF32(safe_x, safe_y);
  return Choose(is_small, x, Choose(fits, CopySign(rest, x), NotANumber(x)));
}

Scalar FmaOp(ElementType type, std::span<const Element> operands) {
  Scalar x = operands[0][0], y = operands[1][0], z = operands[2][0];
  if (!IsNarrow(type)) return Fma(x, y, z);
  x = x.As(ScalarType::kF64), y = y.As(ScalarType::kF64), z = z.As(ScalarType::kF64);
  // The product is exact. The rounding error of the sum is folded into its last bit (round to odd),
  // so that rounding again to the narrow type equals one rounding.
  Scalar product = x * y, sum = product + z, back = sum - product;
  Scalar lost = (product - (sum - back)) + (z - back);
  Scalar bits = sum.BitsAs(ScalarType::kS64), one = Wide(sum, 1);
  Scalar odd = Choose((lost > 0) == (sum > 0), bits + one, bits - one);
  Scalar is_kept = (lost == 0) | ((bits & one) == one) | !(AbsOf(sum) < Infinity(sum));
  return Choose(is_kept, sum, odd.BitsAs(ScalarType::kF64));
}

std::optional<Scalar> RealOp(Op op, std::span<const Element> operands) {
  Scalar x = operands[0][0], y = operands.size() > 1 ? operands[1][0] : Scalar();
  switch (op) {
    case Op::kAdd:
      return x + y;
    case Op::kSubtract:
      return x - y;
    case Op::kMultiply:
      return x * y;
    case Op::kDivide:
      return x / y;
    case Op::kRemainder:
      return RemainderOf(x, y);
    case Op::kMaximum:
      return MaximumOf(x, y);
    case Op::kMinimum:
      return MinimumOf(x, y);
    case Op::kAbs:
      return AbsOf(x);
    case Op::kNegate:
      return -x;
    case Op::kSign:
      return SignOf(x);
    case Op::kSquare:
      return x * x;
    case Op::kSqrt:
      return SqrtOf(x);
    case Op::kRsqrt:
      // GPUs have one instruction for 1 / sqrt(x).
      if (HasApproximations(x)) return x.builder().Make(Prim::kInverse, {SqrtOf(x)});
      return 1 / SqrtOf(x);
    case Op::kReal:
    case Op::kConj:
      return x;
    case Op::kImag:
      return x.Like(0);
    case Op::kIsFinite:
      return AbsOf(x) < Infinity(x);
    case Op::kIsInf:
      return AbsOf(x) == Infinity(x);
    case Op::kIsPosInf:
      return x == Infinity(x);
    case Op::kIsNegInf:
      return x == -Infinity(x);
    default:
      return std::nullopt;
  }
}

}  // namespace tokamak::formulas
