// e^x and functions built on it. x = n ln 2 + r with |r| <= ln 2 / 2; e^r is a polynomial
// (tools/fit_formulas.py), 2^n is built from its bits.

#include "kernel/formulas.h"
#include "kernel/formulas/functions.h"

namespace tokamak::formulas {
namespace {

bool IsWideExp(Scalar x) {
  return x.type() == ScalarType::kF64;
}

// n in the low bits of `rounder`, which is n + 1.5 * 2^52 (2^23 for f32). No conversion is needed,
// so NaN and infinity are harmless.
struct Reduced {
  Scalar rounder, rest;
};

constexpr double kInverse = 0x1.71547652b82fep+0;

Reduced ByLn2(Scalar x) {
  bool wide = IsWideExp(x);
  double magic = wide ? 0x1.8p52 : 0x1.8p23;
  double high = wide ? 0x1.62e42fefa39efp-1 : 0x1.62e43p-1;
  double low = wide ? 0x1.abc9e3b39803fp-56 : -0x1.05c61p-29;
  Scalar rounder = Fma(x, x.Like(kInverse), x.Like(magic));
  Scalar n = rounder - magic;
  return {rounder, Fma(n, x.Like(-low), Fma(n, x.Like(-high), x))};
}

// n + `more` as an unsigned integer. Requires that it is not negative.
Scalar PowerPlus(Scalar rounder, int more) {
  Scalar bits = rounder.BitsAs(BitsTypeOf(rounder.type()));
  Bits magic = BitsOfDouble(rounder.type(), IsWideExp(rounder) ? 0x1.8p52 : 0x1.8p23);
  return bits - rounder.builder().ConstantBits(bits.type(), magic - static_cast<Bits>(more));
}
Scalar FromExponentField(Scalar field, ScalarType type) {
  return (field << field.Like(type == ScalarType::kF64 ? 52 : 23)).BitsAs(type);
}

// value * 2^n in two steps, so that a subnormal result is rounded once.
Scalar ScaledBy(Scalar value, Scalar rounder) {
  Scalar twice = PowerPlus(rounder, IsWideExp(value) ? 2046 : 254);
  Scalar first = twice >> twice.Like(1);
  return value * FromExponentField(first, value.type()) *
         FromExponentField(twice - first, value.type());
}

// (e^r - 1 - r) / r^2
Scalar Tail(Scalar r) {
  if (IsWideExp(r)) {
    return Polynomial(r, {0.5, 0.16666666666666671, 0.041666666666666671, 0.0083333333333261411,
                          0.0013888888888883752, 0.00019841269874800493, 2.4801587325533363e-5,
                          2.7557255425746435e-6, 2.7557273661348637e-7, 2.5105206373957011e-8,
                          2.0914679376583931e-9});
  }
  return Polynomial(r,
                    {0.5, 0.166666672, 0.0416664667, 0.00833331048, 0.00139336416, 0.000198909809});
}

// Min and max with the constant as the first operand propagate NaN.
Scalar Clamped(Scalar x, double low, double high) {
  return LesserOf(x.Like(high), GreaterOf(x.Like(low), x));
}

// Uses the hardware's 2^r. n is clamped, and r takes the remainder: a subnormal product is rounded
// once, and NaN and infinities propagate through r.
Scalar ExpByExp2(Scalar x) {
  constexpr double kMagic = 0x1.8p23 + 127;  // makes the low bits of the rounder n + 127
  Scalar bounded = LesserOf(GreaterOf(x, x.Like(-87.33)), x.Like(88.02));
  Scalar rounder = Fma(bounded, x.Like(kInverse), x.Like(kMagic)), n = rounder - kMagic;
  Scalar r = Fma(x, x.Like(0x1.715476p+0), -n);
  r = Fma(x, x.Like(0x1.4ae0bep-26), r);
  Scalar power = x.builder().Make(Prim::kExp2, {r});
  return power * FromExponentField(rounder.BitsAs(ScalarType::kU32), ScalarType::kF32);
}

}  // namespace

Scalar Exp(Scalar x) {
  if (HasApproximations(x)) return ExpByExp2(x);
  // A product that underflows is about a hundred times slower on some processors, and masked inputs
  // produce many of them. Skip it.
  Scalar vanishes = x < (IsWideExp(x) ? -746 : -104);
  Scalar bounded = LesserOf(x.Like(IsWideExp(x) ? 710 : 89), Choose(vanishes, x.Like(0), x));
  auto [rounder, r] = ByLn2(bounded);
  return Choose(vanishes, x.Like(0), ScaledBy(Fma(r * r, Tail(r), r) + 1, rounder));
}

// The square of 2^(x log2(e) / 2), which is neither subnormal nor infinite unless e^x is far out of
// range: relative error 2^-21 for small |x|, 2^-18 where the exponent of the result is large.
Scalar ExpFor16Bits(Scalar x) {
  if (!HasApproximations(x)) return Exp(x);
  Scalar root = x.builder().Make(Prim::kExp2, {x * (kInverse / 2)});
  return root * root;
}

Scalar ExpOfSum(Scalar high, Scalar low) {
  Scalar x = Clamped(high, -746, 710);
  auto [rounder, r] = ByLn2(x);
  Scalar rest = Choose(x == high, low, low.Like(0));
  Scalar sum = r + rest;
  return ScaledBy(Fma(sum * sum, Tail(sum), sum) + 1, rounder);
}

Scalar Expm1(Scalar x) {
  Scalar bounded = IsWideExp(x) ? Clamped(x, -38, 710) : Clamped(x, -18, 89);
  auto [rounder, r] = ByLn2(bounded);
  Scalar minus = Fma(r * r, Tail(r), r);  // e^r - 1
  // 2^n (e^r - 1) + 2^n - 1, halved, because 2^n alone may overflow.
  Scalar half = FromExponentField(PowerPlus(rounder, IsWideExp(x) ? 1022 : 126), x.type());
  Scalar result = Fma(half, minus, half - 0.5) * 2;
  return Choose(AbsOf(x) < (IsWideExp(x) ? 0x1p-54 : 0x1p-25), x, result);
}

// From e^-|x|, which cannot overflow.
Scalar Logistic(Scalar x) {
  Scalar t = Exp(-AbsOf(x)), sum = t + 1, is_negative = x < 0;
  Scalar result = ApproximateQuotient(Choose(is_negative, t, x.Like(1)), sum);
  // The rounding error of the sum, relative: lost / sum, where 1 / sum is one of the two results.
  Scalar lost = t - (sum - 1), inverse = Choose(is_negative, 1 - result, result);
  return Fma(-(result * lost), inverse, result);
}

Scalar LogisticFor16Bits(Scalar x) {
  if (!HasApproximations(x)) return Logistic(x);
  Scalar t = ExpFor16Bits(-AbsOf(x)), inverse = x.builder().Make(Prim::kInverse, {t + 1});
  return Choose(x < 0, t * inverse, inverse);
}

// x p(x^2) / q(x^2) (tools/fit_formulas.py): relative error 2^-22 up to 5, where the result already
// rounds to 1.
Scalar TanhFor16Bits(Scalar x) {
  if (!HasApproximations(x)) return Tanh(x);
  Scalar bounded = MinimumOf(MaximumOf(x, x.Like(-5)), x.Like(5)), u = bounded * bounded;
  Scalar p = Polynomial(u, {0.99999994, 0.125481904, 0.00250897883, 5.18287061e-6});
  Scalar q = Polynomial(u, {1, 0.458814621, 0.0221148524, 0.000169035848});
  return bounded * p * x.builder().Make(Prim::kInverse, {q});
}

// 1 - 2 / (1 + e^2|x|) with the hardware's 2^x and inverse: their errors, of 2 and 1 ulp, are 1.8
// ulp of the result from 1.25 on (tools/fit_formulas.py has the polynomial below). NaN propagates,
// and the inverse of infinity is 0.
Scalar TanhByExp2(Scalar x) {
  KernelBuilder& b = x.builder();
  Scalar size = AbsOf(x), u = x * x;
  Scalar odd = Polynomial(u, {-0.333332658, 0.133318931, -0.0538615286, 0.0214781743,
                              -0.00804101583, 0.00252215471, -0.000548053475, 5.81513741e-5});
  Scalar small = Fma(odd * u, size, size);
  Scalar power = b.Make(Prim::kExp2, {size * (2 * kInverse)});
  Scalar large = Fma(b.Make(Prim::kInverse, {power + 1}), x.Like(-2), x.Like(1));
  return CopySign(Choose(size < 1.25, small, large), x);
}

Scalar Tanh(Scalar x) {
  if (HasApproximations(x)) return TanhByExp2(x);
  Scalar size = AbsOf(x);
  if (IsWideExp(x)) {
    Scalar minus = Expm1(LesserOf(x.Like(20), size) * 2);
    return CopySign(minus / (minus + 2), x);
  }
  Scalar u = x * x;
  Scalar odd =
      Polynomial(u, {-0.333333313, 0.133329153, -0.0538739488, 0.0211109594, -0.00626911968});
  Scalar small = Fma(odd * u, size, size);
  auto [rounder, r] = ByLn2(LesserOf(x.Like(10), size) * -2);
  Scalar scale = FromExponentField(PowerPlus(rounder, 127), x.type());
  Scalar t = (Fma(r * r, Tail(r), r) + 1) * scale;  // e^-2|x|
  Scalar large = 1 - ApproximateQuotient(t * 2, t + 1);
  return CopySign(Choose(size < 0.6, small, large), x);
}

// Clamps the argument, because results below e^-86 need not be distinguished. Then 2^n is a normal
// number, and so is half of the largest one.
Scalar ExpOfTerm(Scalar x) {
  if (IsWideExp(x) || HasApproximations(x)) return Exp(x);
  auto [rounder, r] = ByLn2(Clamped(x, -86, 89));
  Scalar half = FromExponentField(PowerPlus(rounder, 126), x.type());
  return (Fma(r * r, Tail(r), r) + 1) * half * 2;
}

}  // namespace tokamak::formulas
