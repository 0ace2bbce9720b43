// atan, atan2, asin, acos.

#include "kernel/formulas/functions.h"

namespace tokamak::formulas {
namespace {

bool IsWideArc(Scalar x) {
  return x.type() == ScalarType::kF64;
}

constexpr double kHalfPi = 0x1.921fb54442d18p+0, kHalfPiLow = 0x1.1a62633145c07p-54;
constexpr double kTanEighth = 0.41421356237309503;  // tan(pi / 8)

// (atan z - z) / z^3 as a function of u = z^2, |z| <= tan(pi / 8)
Scalar AtanTail(Scalar u) {
  return Polynomial(
      u, {-0.33333333333333331, 0.19999999999995491, -0.14285714284660139, 0.11111111014741562,
          -0.090909045572142674, 0.076921827052463199, -0.066645046100326483, 0.058580895386102033,
          -0.050851391487066376, 0.039222688823476320, -0.019165906506304300});
}

// The angle of the f64 point (x, y) with x, y >= 0, not both 0 or infinite. Up to tan(pi/8)
// directly, from there to 1/tan(pi/8) as pi/4 plus a remainder, beyond as pi/2 plus a remainder.
// One division.
Double AngleOf(Scalar y, Scalar x) {
  Scalar is_low = y <= x * kTanEighth, is_high = x < y * kTanEighth;
  Scalar top = Choose(is_low, y, Choose(is_high, -x, y - x));
  Scalar bottom = Choose(is_low, x, Choose(is_high, y, x + y));
  auto pick = [&](double value) {
    return Choose(is_low, x.Like(0), Choose(is_high, x.Like(value), x.Like(value / 2)));
  };
  Scalar z = top / bottom, u = z * z;
  return {pick(kHalfPi), Fma(AtanTail(u) * u, z, z) + pick(kHalfPiLow)};
}

// For f32 one polynomial covers 0 to 1: fewer roundings before it.
Scalar AtanOfF32(Scalar x) {
  Scalar size = AbsOf(x), is_large = size > 1, one = x.Like(1);
  Scalar z = Choose(is_large, one, size) / Choose(is_large, size, one), u = z * z;
  Scalar tail = Polynomial(u, {-0.333333313, 0.199997395, -0.142785683, 0.110337645, -0.0865688026,
                               0.0625016913, -0.0358715393, 0.0135077713, -0.00238699722});
  Scalar angle = Fma(tail * u, z, z);
  Scalar turned = 0x1.921fb6p+0 - (angle + 0x1.777a5cp-25);
  return CopySign(Choose(is_large, turned, angle), x);
}

// (asin x - x) / x^3 as a function of u = x^2
Scalar AsinTail(Scalar u) {
  return Polynomial(
      u, {0.16666666666666669, 0.074999999999984246, 0.044642857146373380, 0.030381944137085216,
          0.022372173002005596, 0.017352391265909227, 0.013971235301124539, 0.011478952690257387,
          0.010324318288744113, 0.0054508781877205502, 0.017419357964884856, -0.014881409392818066,
          0.028778442612593040});
}

// asin z for z = min(|x|, sqrt((1 - |x|) / 2)), at most 1/2, and the rounding error of that root.
struct HalfAngle {
  Scalar is_large, angle;
};
HalfAngle HalfAngleOf(Scalar size) {
  Scalar is_large = size > 0.5;
  Scalar u = Choose(is_large, (1 - size) * 0.5, size * size);
  Scalar root = SqrtOf(u);
  Scalar lost = Fma(-root, root, u) / (root * 2);  // rounding error of the root
  lost = Choose(is_large & (root > 0), lost, size.Like(0));
  Scalar z = Choose(is_large, root, size);
  return {is_large, z + Fma(AsinTail(u) * u, z, lost)};
}

}  // namespace

Scalar Atan(Scalar x) {
  if (!IsWideArc(x)) return AtanOfF32(x);
  Scalar size = AbsOf(x);
  Scalar is_infinite = size == Infinity(x), one = x.Like(1);
  auto [high, low] = AngleOf(Choose(is_infinite, one, size), Choose(is_infinite, x.Like(0), one));
  return CopySign(high + low, x);
}

Scalar Atan2(Scalar y, Scalar x) {
  if (!IsWideArc(x)) {
    // In f64, quotients neither overflow nor lose bits.
    return Atan2(y.As(ScalarType::kF64), x.As(ScalarType::kF64)).As(ScalarType::kF32);
  }
  Scalar a = AbsOf(y), b = AbsOf(x), one = x.Like(1), zero = x.Like(0);
  Scalar y_infinite = a == Infinity(x), x_infinite = b == Infinity(x);
  Scalar has_infinite = y_infinite | x_infinite, has_zeros = (a == 0) & (b == 0);
  a = Choose(has_infinite, Choose(y_infinite, one, zero), a);
  b = Choose(has_infinite, Choose(x_infinite, one, zero), b);
  // Scales large and small numbers, so that sums and products stay in range.
  Scalar is_huge = (a > 0x1p1000) | (b > 0x1p1000), is_tiny = (a < 0x1p-1000) & (b < 0x1p-1000);
  Scalar scale = Choose(is_huge, x.Like(0x1p-30), Choose(is_tiny, x.Like(0x1p80), one));
  auto [high, low] = AngleOf(a * scale, Choose(has_zeros, one, b * scale));
  Scalar is_left = x.BitsAs(ScalarType::kS64) < 0;  // includes -0
  // pi - (high + low)
  Scalar left = (x.Like(2 * kHalfPi) - high) + (x.Like(2 * kHalfPiLow) - low);
  Scalar angle = Choose(is_left, left, high + low);
  return Choose(IsNan(x) | IsNan(y), NotANumber(x), CopySign(angle, y));
}

Scalar Asin(Scalar x) {
  auto [is_large, angle] = HalfAngleOf(AbsOf(x));
  Scalar large = x.Like(kHalfPi) - (angle * 2 - kHalfPiLow);
  Scalar result = CopySign(Choose(is_large, large, angle), x);
  return Choose(AbsOf(x) < 0x1p-27, x, result);
}

Scalar Acos(Scalar x) {
  auto [is_large, angle] = HalfAngleOf(AbsOf(x));
  Scalar twice = angle * 2;
  Scalar large = Choose(x < 0, x.Like(2 * kHalfPi) - (twice - 2 * kHalfPiLow), twice);
  Scalar small = x.Like(kHalfPi) - (CopySign(angle, x) - kHalfPiLow);
  return Choose(is_large, large, small);
}

}  // namespace tokamak::formulas
