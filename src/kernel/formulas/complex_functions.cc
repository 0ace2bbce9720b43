// Functions of complex numbers, built from the functions of reals.

#include "kernel/formulas/complex.h"

namespace tokamak::formulas {
namespace {

Scalar IsInfinitePart(Scalar x) {
  return AbsOf(x) == Infinity(x);
}
Scalar IsFinitePart(Scalar x) {
  return AbsOf(x) < Infinity(x);
}
Complex PickParts(Scalar condition, Complex yes, Complex no) {
  return {Choose(condition, yes.re, no.re), Choose(condition, yes.im, no.im)};
}
Complex NanParts(Complex z) {
  return {NotANumber(z.re), NotANumber(z.re)};
}
// An infinite real part with an undefined angle: NaN throughout, as in XLA.
Scalar HasNoAngle(Complex z) {
  return IsInfinitePart(z.re) & (!IsFinitePart(z.im));
}
Complex TimesI(Complex z) {
  return {-z.im, z.re};
}
Complex OverI(Complex z) {
  return {z.im, -z.re};
}

// log |z|, accurate also for |z| near 1: computed from x^2 + y^2 - 1 without rounding before the
// cancellation.
Scalar LogModulus(Complex z) {
  auto [scaled, square, unscale] = ScaledModulusOf(z);
  Scalar log_scale = Choose(unscale == 1, unscale.Like(0),
                            Choose(unscale > 1, unscale.Like(600), unscale.Like(-600)));
  Scalar far = Fma(log_scale, unscale.Like(0x1.62e42fefa39efp-1), Log(square) * 0.5);
  Double x = TimesExactly(scaled.re, scaled.re), y = TimesExactly(scaled.im, scaled.im);
  Scalar x_larger = x.high > y.high;
  Double large{Choose(x_larger, x.high, y.high), Choose(x_larger, x.low, y.low)};
  Double small{Choose(x_larger, y.high, x.high), Choose(x_larger, y.low, x.low)};
  Double rest = AddExactly(large.high - 1, small.high);
  Scalar near = Log1p(rest.high + (rest.low + (large.low + small.low))) * 0.5;
  Scalar is_near = (unscale == 1) & (square > 0.5) & (square < 3);
  Scalar result = Choose(is_near, near, far);
  return Choose(IsInfinitePart(z.re) | IsInfinitePart(z.im), Infinity(z.re), result);
}

// e^x cos y and e^x sin y, without overflow of e^x alone.
Complex CExp(Complex z) {
  Scalar half = formulas::Exp(z.re * 0.5);
  auto [sin, cos] = SinCosOf(z.im);
  sin = Choose(AbsOf(z.im) < 0x1p-27, z.im, sin);
  Complex result{(half * cos) * half, (half * sin) * half};
  Scalar infinity = Infinity(z.re), zero = z.re.Like(0), lost = !IsFinitePart(z.im);
  result = PickParts((z.re == -infinity) & lost, {zero, zero}, result);
  return PickParts((z.re == infinity) & lost, {infinity, NotANumber(zero)}, result);
}

Complex ExpOrReal(Complex z) {
  return PickParts(z.im == 0, {formulas::Exp(z.re), z.im}, CExp(z));
}

Complex CExpm1(Complex z) {
  Complex all = CExp(z);
  Scalar is_far = (!(IsFinitePart(z.re) & IsFinitePart(z.im))) | (z.re > 11);
  auto [sin, cos] = SinCosOf(z.im);
  Scalar half = SinCosOf(z.im * 0.5).sin, minus = formulas::Expm1(z.re);
  Complex near{Fma(minus, cos, half * half * -2), formulas::Exp(z.re) * sin};
  Complex result = PickParts(is_far, {all.re - 1, all.im}, near);
  result = PickParts(HasNoAngle(z), NanParts(z), result);
  return PickParts(z.im == 0, {minus, z.im}, result);
}

// log |1 + z| = log1p(2 x + x^2 + y^2) / 2, with an exact sum where it cancels.
Complex ComplexLog1p(Complex z) {
  Scalar moved = z.re + 1, angle = Atan2(z.im, moved);
  Scalar size = GreaterOf(AbsOf(z.re), AbsOf(z.im));
  Double x = TimesExactly(z.re, z.re), y = TimesExactly(z.im, z.im);
  Double first = AddExactly(z.re * 2, x.high), second = AddExactly(first.high, y.high);
  Scalar near = Log1p(second.high + ((x.low + y.low) + (first.low + second.low))) * 0.5;
  // Far below 0 the logarithm magnifies errors, and 1 + x is exact.
  Scalar is_near = (size < 8) & (second.high > -0.5);
  return {Choose(is_near, near, LogModulus({moved, z.im})), angle};
}

// w = sqrt((|x| + |z|) / 2), and the other component is y / 2w, on scaled components. -0 keeps its
// sign.
Complex CSqrt(Complex z) {
  auto [scaled, square, unscale] = ScaledModulusOf(z);
  Scalar root_scale = Choose(unscale == 1, unscale,
                             Choose(unscale > 1, unscale.Like(0x1p300), unscale.Like(0x1p-300)));
  Scalar w = SqrtOf((AbsOf(scaled.re) + SqrtOf(square)) * 0.5);
  Scalar other = Choose(w == 0, w, AbsOf(scaled.im) / (w * 2));
  w = w * root_scale;
  other = other * root_scale;
  // The sign bit decides, also for NaN.
  Scalar is_left = z.re < 0, zero = z.re.Like(0), infinity = Infinity(z.re);
  Complex result{Choose(is_left, other, w), CopySign(Choose(is_left, w, other), z.im)};
  Complex right{infinity, Choose(IsNan(z.im), z.im, CopySign(zero, z.im))};
  Complex left{Choose(IsNan(z.im), z.im, zero), CopySign(infinity, z.im)};
  result = PickParts(z.re == infinity, right, result);
  result = PickParts(z.re == -infinity, left, result);
  return PickParts(IsInfinitePart(z.im), {infinity, z.im}, result);
}

Complex CCbrt(Complex z) {
  auto [sin, cos] = SinCosOf(Atan2(z.im, z.re) / 3);
  Scalar root = CubeRoot(Modulus(z));
  return PickParts((z.re == 0) & (z.im == 0), z, {root * cos, root * sin});
}

Complex CSinh(Complex z) {
  auto [sin, cos] = SinCosOf(z.im);
  sin = Choose(AbsOf(z.im) < 0x1p-27, z.im, sin);
  Scalar size = AbsOf(z.re);
  Scalar half = formulas::Exp(size * 0.5), quarter = half * 0.5;
  Scalar is_large = size > 40;
  // For large |x|: e^|x| / 2 times cos and sin, in two steps.
  Scalar larger = (quarter * cos) * half;
  Complex large{Choose(z.re < 0, -larger, larger), (quarter * sin) * half};
  Complex small{formulas::Sinh(z.re) * cos, formulas::Cosh(z.re) * sin};
  Complex result = PickParts(is_large, large, small);
  result = PickParts(z.im == 0, {formulas::Sinh(z.re), z.im}, result);
  // A zero real part stays zero if the imaginary part is not finite.
  result.re = Choose((z.re == 0) & (!IsFinitePart(z.im)), z.re, result.re);
  result.im = Choose((z.re == 0) & (!IsFinitePart(z.im)), NotANumber(z.re), result.im);
  return PickParts(HasNoAngle(z), NanParts(z), result);
}

Complex CCosh(Complex z) {
  auto [sin, cos] = SinCosOf(z.im);
  sin = Choose(AbsOf(z.im) < 0x1p-27, z.im, sin);
  Scalar size = AbsOf(z.re);
  Scalar half = formulas::Exp(size * 0.5), quarter = half * 0.5;
  Scalar larger = (quarter * sin) * half;
  Complex large{(quarter * cos) * half, Choose(z.re < 0, -larger, larger)};
  Scalar sinh = formulas::Sinh(z.re), cosh = formulas::Cosh(z.re);
  Complex result = PickParts(size > 40, large, {cosh * cos, sinh * sin});
  // On the real line 0 times anything is 0.
  Scalar signed_zero = CopySign(z.re.Like(0), z.im);
  Scalar zero = Choose(z.re < 0, -signed_zero, signed_zero);
  zero = Choose(z.re == 0, z.re * z.im, zero);
  result = PickParts(z.im == 0, {cosh, Choose(IsNan(z.re), z.im, zero)}, result);
  result.im = Choose((z.re == 0) & (!IsFinitePart(z.im)), z.re.Like(0), result.im);
  return PickParts(HasNoAngle(z), NanParts(z), result);
}

// (sinh 2x + i sin 2y) / (cosh 2x + cos 2y) = (sinh x cosh x + i sin y cos y) / (sinh^2 x + cos^2
// y)
Complex CTanh(Complex z) {
  auto [sin, cos] = SinCosOf(z.im);
  sin = Choose(AbsOf(z.im) < 0x1p-27, z.im, sin);
  Scalar sinh = formulas::Sinh(z.re), cosh = formulas::Cosh(z.re), size = AbsOf(z.re);
  Scalar below = Fma(sinh, sinh, cos * cos), one = CopySign(z.re.Like(1), z.re);
  Complex near{sinh * cosh / below, sin * cos / below};
  // For large |x|: 1, and 4 sin y cos y e^-2|x|.
  Scalar decay = formulas::Exp(-size);
  Complex far{one, (sin * cos * 4) * decay * decay};
  Scalar is_far = size > 22, zero = CopySign(z.re.Like(0), z.im);
  Complex result = PickParts(is_far, far, near);
  result = PickParts(IsNan(z.im), NanParts(z), result);
  result = PickParts(IsInfinitePart(z.re),
                     {one, Choose(IsFinitePart(z.im), CopySign(zero, sin * cos), zero)}, result);
  result = PickParts(z.im == 0, {formulas::Tanh(z.re), z.im}, result);
  // A zero stays zero if the angle is NaN.
  result.re = Choose((z.re == 0) & IsNan(z.im), z.re, result.re);
  return PickParts(IsFinitePart(z.re) & IsInfinitePart(z.im), NanParts(z), result);
}

Complex CTan(Complex z) {
  Complex result = OverI(CTanh(TimesI(z)));
  return PickParts(IsInfinitePart(z.re) & IsFinitePart(z.im), NanParts(z), result);
}

// 1 / (1 + e^-z). Near its poles e^-z is near -1; e^(z/2) / (2 cosh(z/2)) does not cancel there.
Complex CLogistic(Complex z, bool is_c64) {
  Complex e = ExpOrReal({-z.re, -z.im}), one{z.re.Like(1), z.re.Like(0)};
  Complex result = Divide(one, {e.re + 1, e.im});
  if (is_c64) return result;
  Complex half{z.re * 0.5, z.im * 0.5}, cosh = CCosh(half);
  Complex near = Divide(CExp(half), {cosh.re * 2, cosh.im * 2});
  Scalar is_near = (AbsOf(z.re) < 20) & IsFinitePart(z.im) & (z.im != 0);
  result = PickParts(is_near, near, result);
  return PickParts((z.re < -600) & IsFinitePart(z.re), CExp(z), result);  // e^-z overflows
}

// z^w = e^(w log z), which is accurate enough only with more bits than the result has. Zero and
// non-finite operands are supported on the real line only; z^0 and 1^w are 1 for all z and w.
Complex CPower(Complex z, Complex w) {
  Scalar zero = z.re.Like(0), one = z.re.Like(1), infinity = Infinity(zero);
  Complex result = CExp(Multiply(w, ComplexLog(z)));
  Scalar finite = IsFinitePart(z.re) & IsFinitePart(z.im) & IsFinitePart(w.re) & IsFinitePart(w.im);
  Scalar of_zero = (z.re == 0) & (z.im == 0), of_infinity = (z.re == infinity) & (z.im == 0);
  Scalar to_positive = (w.im == 0) & (w.re > 0), to_negative = (w.im == 0) & (w.re < 0);
  result = PickParts(finite & (!of_zero), result, NanParts(z));
  Scalar is_zero = (of_zero & to_positive) | (of_infinity & to_negative);
  result = PickParts(is_zero, {zero, zero}, result);
  result = PickParts(of_infinity & to_positive, {infinity, zero}, result);
  Scalar is_one = ((w.re == 0) & (w.im == 0)) | ((z.re == 1) & (z.im == 0));
  return PickParts(is_one, {one, zero}, result);
}

}  // namespace

Complex ComplexLog(Complex z) {
  return {LogModulus(z), Atan2(z.im, z.re)};
}
Complex ComplexSqrt(Complex z) {
  return CSqrt(z);
}

std::optional<Complex> ComplexFunction(Op op, Complex x, Complex y, bool is_c64) {
  Complex one{x.re.Like(1), x.re.Like(0)};
  switch (op) {
    case Op::kExp:
      return ExpOrReal(x);
    case Op::kExpm1:
      return CExpm1(x);
    case Op::kLog:
      return ComplexLog(x);
    case Op::kLog1p:
      return ComplexLog1p(x);
    case Op::kLogistic:
      return CLogistic(x, is_c64);
    case Op::kSqrt:
      return CSqrt({x.re, Choose(x.im == 0, AbsOf(x.im), x.im)});
    case Op::kRsqrt:
      return Divide(one, CSqrt(x));
    case Op::kCbrt:
      return CCbrt(x);
    case Op::kSinh:
      return CSinh(x);
    case Op::kCosh:
      return CCosh(x);
    case Op::kTanh:
      return CTanh(x);
    case Op::kSin:
      return OverI(CSinh(TimesI(x)));
    case Op::kCos:
      return CCosh(TimesI(x));
    case Op::kTan:
      return CTan(x);
    case Op::kPower:
      if (!is_c64) return std::nullopt;
      return CPower(x, y);
    default:
      return ComplexInverse(op, x);
  }
}

}  // namespace tokamak::formulas
