// Inverse functions of complex numbers after Kahan, "Branch cuts for complex elementary functions"
// (1987), which is exact to a few units of the last place of the modulus. Infinities and NaNs are
// as the C library has them.

#include "kernel/formulas/complex.h"

namespace tokamak::formulas {
namespace {

constexpr double kHalfPi = 0x1.921fb54442d18p+0;

Scalar IsInfinite(Scalar x) {
  return AbsOf(x) == Infinity(x);
}
Complex Pick(Scalar condition, Complex yes, Complex no) {
  return {Choose(condition, yes.re, no.re), Choose(condition, yes.im, no.im)};
}
Complex Nans(Complex z) {
  return {NotANumber(z.re), NotANumber(z.re)};
}
Scalar IsFinite(Complex z) {
  return (AbsOf(z.re) < Infinity(z.re)) & (AbsOf(z.im) < Infinity(z.im));
}
Scalar Signed(double value, Scalar sign) {
  return CopySign(sign.Like(value), sign);
}

struct Roots {
  Complex minus, plus;  // of 1 - z and 1 + z
};
Roots RootsOf(Complex z) {
  return {ComplexSqrt({1 - z.re, -z.im}), ComplexSqrt({z.re + 1, z.im})};
}

Complex OpenAsin(Complex z) {
  Scalar infinity = CopySign(Infinity(z.re), z.im);
  Scalar x_infinite = IsInfinite(z.re), y_infinite = IsInfinite(z.im);
  // Both, the real part, the imaginary part infinite.
  Complex result{
      Choose(x_infinite, Choose(y_infinite, Signed(kHalfPi / 2, z.re), Signed(kHalfPi, z.re)),
             Signed(0, z.re)),
      infinity};
  Complex with_nan = Pick(x_infinite | y_infinite, {NotANumber(z.re), infinity}, Nans(z));
  with_nan = Pick(z.re == 0, {z.re, NotANumber(z.re)}, with_nan);
  return Pick(IsNan(z.re) | IsNan(z.im), with_nan, result);
}

Complex Asin(Complex z) {
  auto [minus, plus] = RootsOf(z);
  Scalar re = Atan2(z.re, minus.re * plus.re - minus.im * plus.im);
  Scalar im = formulas::Asinh(minus.re * plus.im - minus.im * plus.re);
  return Pick(IsFinite(z), {re, CopySign(im, z.im)}, OpenAsin(z));
}

Complex Acos(Complex z) {
  auto [minus, plus] = RootsOf(z);
  Scalar re = Atan2(minus.re, plus.re) * 2;
  Scalar im = CopySign(formulas::Asinh(plus.re * minus.im - plus.im * minus.re), -z.im);
  Complex open = OpenAsin(z);
  open = {z.re.Like(kHalfPi) - open.re, -open.im};
  return Pick(IsFinite(z), {re, im}, open);
}

Complex Acosh(Complex z) {
  Complex minus = ComplexSqrt({z.re - 1, z.im}), plus = ComplexSqrt({z.re + 1, z.im});
  Complex result{formulas::Asinh(minus.re * plus.re + minus.im * plus.im),
                 CopySign(Atan2(minus.im, plus.re) * 2, z.im)};
  Scalar x_infinite = IsInfinite(z.re), y_infinite = IsInfinite(z.im), nan = NotANumber(z.re);
  Scalar is_left = z.re < 0, infinity = Infinity(z.re);
  Scalar corner = Choose(is_left, z.re.Like(1.5 * kHalfPi), z.re.Like(0.5 * kHalfPi));
  Scalar angle = CopySign(Choose(x_infinite, corner, z.re.Like(kHalfPi)), z.im);
  Scalar straight = CopySign(Choose(is_left, z.re.Like(2 * kHalfPi), z.re.Like(0)), z.im);
  Complex open{nan, Choose(z.re == 0, z.re.Like(kHalfPi), nan)};
  open = Pick(x_infinite, {infinity, Choose(IsNan(z.im), nan, straight)}, open);
  open = Pick(y_infinite, {infinity, Choose(IsNan(z.re), nan, angle)}, open);
  return Pick(IsFinite(z), result, open);
}

Complex Atanh(Complex z) {
  Scalar size = AbsOf(z.re), gap = 1 - size;
  Scalar distance = Modulus({gap, z.im}), is_near = distance < 1e-100;
  // log|1 + z| / 2 - log|1 - z| / 2 from its exponential, or as it is where that is out of range.
  Scalar ratio = (size / distance) * 4 / distance;
  Scalar re = Choose(is_near, Log(distance) * -0.5 + 0.34657359027997264, Log1p(ratio) * 0.25);
  Complex result{CopySign(re, z.re), Atan2(z.im * 2, gap * (size + 1) - z.im * z.im) * 0.5};
  Scalar right = Signed(kHalfPi, z.im), zero = Signed(0, z.re);
  result.im = Choose(distance > 1e100, right, result.im);
  Complex open = Pick(IsInfinite(z.re) | (z.re == 0),
                      {zero, Choose(IsNan(z.im), NotANumber(z.re), right)}, Nans(z));
  open = Pick(IsInfinite(z.im), {zero, right}, open);
  return Pick(IsFinite(z), result, open);
}

// -i f(i z)
template <typename Function>
Complex Turned(Function function, Complex z) {
  Complex result = function({-z.im, z.re});
  return {result.im, -result.re};
}

// The library's own for a part that is NaN, which turning would take for the other one.
Complex Asinh(Complex z) {
  Complex result = Turned([](Complex w) { return Asin(w); }, z);
  Scalar nan = NotANumber(z.re), has_infinite = IsInfinite(z.re) | IsInfinite(z.im);
  Complex open = Pick(has_infinite, {CopySign(Infinity(z.re), z.re), nan}, Nans(z));
  open = Pick(z.im == 0, {nan, z.im}, open);
  return Pick(IsNan(z.re) | IsNan(z.im), open, result);
}

Complex Atan(Complex z) {
  Complex result = Turned([](Complex w) { return Atanh(w); }, z);
  Scalar nan = NotANumber(z.re), zero = Signed(0, z.im), right = Signed(kHalfPi, z.re);
  Complex open = Pick(z.im == 0, {nan, zero}, Nans(z));
  open = Pick(IsInfinite(z.im), {Choose(IsNan(z.re), nan, right), zero}, open);
  open = Pick(IsInfinite(z.re), {right, zero}, open);
  return Pick(IsFinite(z), result, open);
}

}  // namespace

std::optional<Complex> ComplexInverse(Op op, Complex z) {
  switch (op) {
    case Op::kAsin:
      return Asin(z);
    case Op::kAcos:
      return Acos(z);
    case Op::kAsinh:
      return Asinh(z);
    case Op::kAcosh:
      return Acosh(z);
    case Op::kAtan:
      return Atan(z);
    case Op::kAtanh:
      return Atanh(z);
    default:
      return std::nullopt;
  }
}

}  // namespace tokamak::formulas
