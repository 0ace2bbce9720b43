// Rounding to integers, and ops on the bits of a real.

#include <algorithm>
#include <cmath>

#include "kernel/formulas/functions.h"

namespace tokamak::formulas {
namespace {

Scalar Number(Scalar pattern, uint64_t bits) {
  return pattern.builder().ConstantBits(pattern.type(), bits);
}

Scalar RoundAwayFromZero(Scalar x) {
  Scalar whole = TruncOf(x);
  Scalar up = Choose(AbsOf(x - whole) >= 0.5, AbsOf(whole) + 1, AbsOf(whole));
  return CopySign(up, x);
}

}  // namespace

std::optional<Scalar> RoundingOp(Op op, Scalar x) {
  switch (op) {
    case Op::kCeil:
      return CeilOf(x);
    case Op::kFloor:
      return FloorOf(x);
    case Op::kRoundEven:
      return RoundEvenOf(x);
    case Op::kRoundAfz:
      return RoundAwayFromZero(x);
    default:
      return std::nullopt;
  }
}

Scalar ReducedPrecision(ElementType type, Scalar x, const ReducePrecisionAttrs& attrs) {
  const FloatFormat& format = FormatOf(type);
  int own = format.mantissa_bits, width = format.exponent_bits + own;
  int mantissa = static_cast<int>(std::min<int64_t>(attrs.mantissa_bits, own));
  int exponent = static_cast<int>(std::min<int64_t>(attrs.exponent_bits, format.exponent_bits));
  uint64_t mask = (uint64_t{1} << width) - 1;
  Scalar all = PatternOf(type, x);
  Scalar bits = all & Number(all, mask), sign = all & Number(all, ~mask);
  Scalar is_over = bits.builder().ConstantBits(ScalarType::kPred, 0), is_under = is_over;
  if (mantissa < own) {
    auto drop = static_cast<uint64_t>(own - mantissa);
    Scalar last = (bits >> Number(bits, drop)) & Number(bits, 1);
    bits = bits + Number(bits, (uint64_t{1} << (drop - 1)) - 1) + last;
    bits = bits & Number(bits, ~((uint64_t{1} << drop) - 1));
    is_over = bits > Number(bits, mask);
  }
  if (exponent < format.exponent_bits) {
    int64_t bias = (int64_t{1} << (exponent - 1)) - 1;
    Scalar field = bits >> Number(bits, static_cast<uint64_t>(own));
    // Whether field - format.bias is above bias, or at most -bias.
    is_over = is_over | (field > Number(bits, static_cast<uint64_t>(bias + format.bias)));
    int64_t least = format.bias - bias;
    if (least >= 0) is_under = field <= Number(bits, static_cast<uint64_t>(least));
  }
  auto ends = [&](double value) {
    return Choose(x < 0, x.Like(RoundToType(type, -value)), x.Like(RoundToType(type, value)));
  };
  // mask: the bits of a pattern without its sign. A number that overflows into the sign is
  // replaced.
  Scalar result = FromPattern(type, (bits & Number(bits, mask)) | sign);
  result = Choose(is_over, ends(HUGE_VAL), Choose(is_under, ends(0.0), result));
  Scalar is_plain = (AbsOf(x) > 0) & (AbsOf(x) < Infinity(x));
  return Choose(is_plain, result, x);
}

Scalar NextAfter(ElementType type, Scalar x, Scalar y) {
  const FloatFormat& format = FormatOf(type);
  uint64_t sign = uint64_t{1} << (format.exponent_bits + format.mantissa_bits);
  Scalar bits = PatternOf(type, x), one = Number(bits, 1);
  Scalar away = (y > x) ^ (x > 0);  // towards zero
  Scalar moved = FromPattern(type, Choose(away, bits - one, bits + one));
  Scalar above = FromPattern(type, one);
  Scalar below = format.has_sign ? FromPattern(type, Number(bits, sign | 1)) : above;
  moved = Choose(x == 0, Choose(y < 0, below, above), moved);
  moved = Choose(x == y, y, moved);
  return Choose(IsNan(x) | IsNan(y), NotANumber(x), moved);
}

// Truncates, and adds one in magnitude if the random number is below the discarded fraction.
Scalar StochasticConvert(ElementType to, Scalar x, Scalar random) {
  int random_bits = InfoOf(random.type()).bits, bits = InfoOf(to).bits;
  double most = std::ldexp(1.0, IsSigned(to) ? bits - 1 : bits);
  x = x.As(ScalarType::kF64);
  Scalar size = AbsOf(x), whole = TruncOf(size);
  Scalar fraction = (size - whole) * std::ldexp(1.0, random_bits);
  Scalar up = (fraction > random.As(ScalarType::kF64)) & (whole + 1 < most);
  Scalar rounded = CopySign(Choose(up, whole + 1, whole), x);
  // A number that is too large stays unchanged: the conversion saturates.
  return Choose(size < most, rounded, x);
}

}  // namespace tokamak::formulas
