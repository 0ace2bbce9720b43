// Logarithms. x = m 2^e with m from sqrt(1/2) to sqrt(2). log(1 + f) with f = m - 1 is a polynomial
// (tools/fit_formulas.py): in f for f32, in s = f / (2 + f) for f64, where log(1 + f) = 2 atanh(s).

#include <cmath>
#include <limits>

#include "kernel/formulas/functions.h"

namespace tokamak::formulas {
namespace {

bool IsWideLog(Scalar x) {
  return x.type() == ScalarType::kF64;
}

struct Parts {
  Scalar mantissa;  // m
  Scalar exponent;  // e, as a float
  Scalar field;     // e + bias, in the position of the exponent bits
};

// Requires a positive normal number; otherwise the result is arbitrary.
Parts MantissaAndExponentOf(Scalar x) {
  bool wide = IsWideLog(x);
  ScalarType type = BitsTypeOf(x.type());
  auto number = [&](Bits bits) { return x.builder().ConstantBits(type, bits); };
  Scalar bits = x.BitsAs(type);
  Bits one = BitsOfDouble(x.type(), 1), root = BitsOfDouble(x.type(), std::sqrt(0.5));
  int shift = wide ? 52 : 23;
  Bits ones = wide ? Bits{0x7ff} << 52 : Bits{0xff} << 23;
  Scalar field = (bits + number(one - root)) & number(ones);
  // The exponent field as a float, built as the low bits of 2^52 (2^23) + field.
  double base = wide ? 0x1p52 : 0x1p23;
  Scalar above =
      ((field >> number(static_cast<Bits>(shift))) | number(BitsOfDouble(x.type(), base)))
          .BitsAs(x.type());
  return {(bits - field + number(one)).BitsAs(x.type()), above - (base + (wide ? 1023 : 127)),
          field};
}

// log(1 + f) + e ln 2
Scalar LogOfParts(Scalar f, Scalar e) {
  if (IsWideLog(f)) {
    Scalar s = f / (f + 2), z = s * s;
    Scalar rest = z * Polynomial(z, {0.66666666666666696, 0.39999999999899449, 0.28571428626001427,
                                     0.22222211130560726, 0.18182889433757515, 0.15331711346672997,
                                     0.14616576421644387});
    Scalar low = Fma(e, f.Like(-0x1.abc9e3b39803fp-56), s * (f - rest));
    return Fma(e, f.Like(0x1.62e42fefa39efp-1), f - low);
  }
  Scalar z = f * f;
  Scalar cubic = Polynomial(f, {0.333333313, -0.250003070, 0.200010449, -0.166412815, 0.142144963,
                                -0.129981831, 0.126223192, -0.0790274367});
  Scalar low = Fma(z, f.Like(-0.5), cubic * (z * f));
  low = Fma(e, f.Like(-0x1.05c61p-29), low);
  return Fma(e, f.Like(0x1.62e43p-1), f + low);
}

// GPUs, where a conversion is one instruction: for a positive normal number, 2^23 e as an integer.
// Subtracting it from the bits of a number divides that number by 2^e.
Scalar ShiftOf(Scalar x) {
  Bits root = BitsOfDouble(x.type(), std::sqrt(0.5));
  auto number = [&](Bits bits) { return x.builder().ConstantBits(ScalarType::kU32, bits); };
  return (x.BitsAs(ScalarType::kU32) - number(root)) & number(0xff800000);
}
Scalar Shifted(Scalar x, Scalar shift) {
  return (x.BitsAs(ScalarType::kU32) - shift).BitsAs(x.type());
}
// log(1 + f) + e ln 2, given e 2^23.
Scalar LogOfShift(Scalar f, Scalar shifted_e) {
  Scalar rest = Polynomial(f, {-0.5, 0.333333313, -0.250003070, 0.200010449, -0.166412815,
                               0.142144963, -0.129981831, 0.126223192, -0.0790274367});
  return Fma(shifted_e, f.Like(0x1.62e43p-24), Fma(rest, f * f, f));
}

double LeastNormal(Scalar x) {
  return IsWideLog(x) ? std::numeric_limits<double>::min() : std::numeric_limits<float>::min();
}

struct Normal {
  Scalar value, lost;  // x = value * 2^-lost
};
Normal NormalOf(Scalar x) {
  Scalar is_small = x < LeastNormal(x);
  double shift = IsWideLog(x) ? 54 : 25;
  return {Choose(is_small, x * std::exp2(shift), x), Choose(is_small, x.Like(shift), x.Like(0))};
}

// The variant for GPUs, with the fewest instructions.
Scalar LogByShift(Scalar x) {
  constexpr double kLost = 25;
  Scalar is_small = x < LeastNormal(x), value = Choose(is_small, x * std::exp2(kLost), x);
  Scalar shift = ShiftOf(value), lost = Choose(is_small, x.Like(kLost * 0x1p23), x.Like(0));
  Scalar e = shift.BitsAs(ScalarType::kS32).As(x.type()) - lost;
  Scalar result = LogOfShift(Shifted(value, shift) - 1, e), infinity = Infinity(x);
  // As unsigned bits, infinity and above: infinity, NaN, and all numbers with a sign.
  Scalar bits = x.BitsAs(ScalarType::kU32);
  result = Choose(bits < infinity.BitsAs(ScalarType::kU32), result, Fma(x, infinity, infinity));
  return Choose(x == 0, -infinity, result);
}

}  // namespace

Scalar Log(Scalar x) {
  if (HasApproximations(x)) return LogByShift(x);
  auto [value, lost] = NormalOf(x);
  Parts parts = MantissaAndExponentOf(value);
  Scalar result = LogOfParts(parts.mantissa - 1, parts.exponent - lost);
  Scalar edge = Choose(x == 0, -Infinity(x), NotANumber(x));
  return Choose(x > 0, Choose(x == Infinity(x), x, result), edge);
}

// f = (1 + x) 2^-e - 1 from x itself, rounded once: x 2^-e and 2^-e - 1 are exact, or their errors
// are far below f.
Scalar LogOfShifted1p(Scalar x) {
  Scalar shift = ShiftOf(x + 1), four = x.Like(4);
  Scalar f = Shifted(x, shift) + Fma(Shifted(four, shift), x.Like(0.25), x.Like(-1));
  return LogOfShift(f, shift.BitsAs(ScalarType::kS32).As(x.type()));
}

// f = (1 + x) 2^-e - 1 from x itself, rounded once. From 2^24 on 1 + x is x.
Scalar LogOf1p(Scalar x) {
  Parts parts = MantissaAndExponentOf(x + 1);
  Scalar top = x.builder().ConstantBits(parts.field.type(), BitsOfDouble(x.type(), 1) * 2);
  Scalar scale = (top - parts.field).BitsAs(x.type());
  Scalar f = Choose(x >= 0x1p24, parts.mantissa - 1, Fma(x, scale, scale - 1));
  return LogOfParts(f, parts.exponent);
}

Scalar Log1pOfF32(Scalar x) {
  Scalar result = CopySign(HasApproximations(x) ? LogOfShifted1p(x) : LogOf1p(x), x);
  // NaN propagates. The domain check comes last.
  result = Choose(x < Infinity(x), result, x);
  return Choose(x <= -1, Choose(x == -1, -Infinity(x), NotANumber(x)), result);
}

// 1 + x is rounded; its rounding error is added back to f.
Scalar Log1p(Scalar x) {
  if (!IsWideLog(x)) return Log1pOfF32(x);
  Scalar sum = x + 1;
  Scalar lost = Choose(x < 1, x - (sum - 1), 1 - (sum - x));
  Parts parts = MantissaAndExponentOf(sum);
  auto number = [&](Bits bits) { return x.builder().ConstantBits(parts.field.type(), bits); };
  Bits top = Bits{0x7fe} << 52, least = Bits{1} << 52;
  Scalar scale = (number(top) - LesserOf(parts.field, number(top - least))).BitsAs(x.type());
  Scalar result = LogOfParts(Fma(lost, scale, parts.mantissa - 1), parts.exponent);
  result = Choose(x == Infinity(x), x, result);
  result = Choose(AbsOf(x) < 0x1p-54, x, result);
  return Choose(x > -1, result, Choose(x == -1, -Infinity(x), NotANumber(x)));
}

Scalar LogForPowerOfF32(Scalar x) {
  Parts parts = MantissaAndExponentOf(x);
  Scalar f = parts.mantissa - 1, s = f / (f + 2), z = s * s;
  Scalar rest = z * Polynomial(z, {0.66666666667375429, 0.39999998796881109, 0.28571754629111484,
                                   0.22191394913518414, 0.19362768670384808});
  return Fma(parts.exponent, f.Like(0x1.62e42fefa39efp-1), Fma(s, rest, s * 2));
}

// A double-double with a relative error of about 2^-66: 2 s + 2/3 s^3 in double-double, the other
// terms in f64.
Double LogForPower(Scalar x) {
  auto [value, lost] = NormalOf(x);
  Parts parts = MantissaAndExponentOf(value);
  Scalar e = parts.exponent - lost, f = parts.mantissa - 1, below = f + 2;
  Scalar below_low = f - (below - 2);
  Scalar s = f / below;
  Scalar s_low = Fma(-s, below_low, Fma(-s, below, f)) / below;
  Double square = TimesExactly(s, s);
  square.low = Fma(s * 2, s_low, square.low);
  Double third{x.Like(0x1.5555555555555p-1), x.Like(0x1.5555555555555p-55)};
  Scalar z = square.high;
  Double factor = Times(square, third);  // 2/3 s^2
  factor.low = factor.low + (z * z) * Polynomial(z, {0.40000000000000002, 0.28571428571429364,
                                                     0.22222222221655907, 0.18181818335387601,
                                                     0.15384594963074136, 0.13334804663624336,
                                                     0.11706237148816372, 0.11723170160799075});
  Double cubic = Times(Double{s, s_low}, factor);
  Double result = PlusOrdered(Double{s * 2, s_low * 2}, cubic);
  Double scale = TimesExactly(e, x.Like(0x1.62e42fefa39efp-1));
  scale.low = Fma(e, x.Like(0x1.abc9e3b39803fp-56), scale.low);
  return Plus(scale, result);
}

}  // namespace tokamak::formulas
