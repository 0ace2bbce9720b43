// Inverse functions of complex numbers after Kahan, "Branch cuts for complex elementary functions"
// (1987), accurate to a few ulp of the modulus. Infinities and NaNs follow the C library.

#include "kernel/formulas/complex.h"

namespace tokamak::formulas {
namespace {

constexpr double kComplexHalfPi = 0x1.921fb54442d18p+0;

Scalar IsInfiniteArgument(Scalar x) {
  return AbsOf(x) == Infinity(x);
}
Complex PickArgument(Scalar condition, Complex yes, Complex no) {
  return {Choose(condition, yes.re, no.re), Choose(condition, yes.im, no.im)};
}
Complex NanArgument(Complex z) {
  return {NotANumber(z.re), NotANumber(z.re)};
}
Scalar IsFinite(Complex z) {
  return (AbsOf(z.re) < Infinity(z.re)) & (AbsOf(z.im) < Infinity(z.im));
}
Scalar Signed(double value, Scalar sign) {
  return CopySign(sign.Like(value), sign);
}

struct Roots {
  Complex minus, plus;  // square roots of 1 - z and 1 + z
};
Roots RootsOf(Complex z) {
  return {ComplexSqrt({1 - z.re, -z.im}), ComplexSqrt({z.re + 1, z.im})};
}

Complex OpenAsin(Complex z) {
  Scalar infinity = CopySign(Infinity(z.re), z.im);
  Scalar x_infinite = IsInfiniteArgument(z.re), y_infinite = IsInfiniteArgument(z.im);
  // Cases: both components infinite, the real one, the imaginary one.
  Complex result{
      Choose(x_infinite,
             Choose(y_infinite, Signed(kComplexHalfPi / 2, z.re), Signed(kComplexHalfPi, z.re)),
             Signed(0, z.re)),
      infinity};
  Complex with_nan =
      PickArgument(x_infinite | y_infinite, {NotANumber(z.re), infinity}, NanArgument(z));
  with_nan = PickArgument(z.re == 0, {z.re, NotANumber(z.re)}, with_nan);
  return PickArgument(IsNan(z.re) | IsNan(z.im), with_nan, result);
}

Complex Asin(Complex z) {
  auto [minus, plus] = RootsOf(z);
  Scalar re = Atan2(z.re, minus.re * plus.re - minus.im * plus.im);
  Scalar im = formulas::Asinh(minus.re * plus.im - minus.im * plus.re);
  return PickArgument(IsFinite(z), {re, CopySign(im, z.im)}, OpenAsin(z));
}

Complex Acos(Complex z) {
  auto [minus, plus] = RootsOf(z);
  Scalar re = Atan2(minus.re, plus.re) * 2;
  Scalar im = CopySign(formulas::Asinh(plus.re * minus.im - plus.im * minus.re), -z.im);
  Complex open = OpenAsin(z);
  open = {z.re.Like(kComplexHalfPi) - open.re, -open.im};
  return PickArgument(IsFinite(z), {re, im}, open);
}

Complex Acosh(Complex z) {
  Complex minus = ComplexSqrt({z.re - 1, z.im}), plus = ComplexSqrt({z.re + 1, z.im});
  Complex result{formulas::Asinh(minus.re * plus.re + minus.im * plus.im),
                 CopySign(Atan2(minus.im, plus.re) * 2, z.im)};
  Scalar x_infinite = IsInfiniteArgument(z.re), y_infinite = IsInfiniteArgument(z.im),
         nan = NotANumber(z.re);
  Scalar is_left = z.re < 0, infinity = Infinity(z.re);
  Scalar corner = Choose(is_left, z.re.Like(1.5 * kComplexHalfPi), z.re.Like(0.5 * kComplexHalfPi));
  Scalar angle = CopySign(Choose(x_infinite, corner, z.re.Like(kComplexHalfPi)), z.im);
  Scalar straight = CopySign(Choose(is_left, z.re.Like(2 * kComplexHalfPi), z.re.Like(0)), z.im);
  Complex open{nan, Choose(z.re == 0, z.re.Like(kComplexHalfPi), nan)};
  open = PickArgument(x_infinite, {infinity, Choose(IsNan(z.im), nan, straight)}, open);
  open = PickArgument(y_infinite, {infinity, Choose(IsNan(z.re), nan, angle)}, open);
  return PickArgument(IsFinite(z), result, open);
}

Complex Atanh(Complex z) {
  Scalar size = AbsOf(z.re), gap = 1 - size;
  Scalar distance = Modulus({gap, z.im}), is_near = distance < 1e-100;
  // log|1 + z| / 2 - log|1 - z| / 2, from one log1p, or directly where that is out of range.
  Scalar ratio = (size / distance) * 4 / distance;
  Scalar re = Choose(is_near, Log(distance) * -0.5 + 0.34657359027997264, Log1p(ratio) * 0.25);
  Complex result{CopySign(re, z.re), Atan2(z.im * 2, gap * (size + 1) - z.im * z.im) * 0.5};
  Scalar right = Signed(kComplexHalfPi, z.im), zero = Signed(0, z.re);
  result.im = Choose(distance > 1e100, right, result.im);
  Complex open = PickArgument(IsInfiniteArgument(z.re) | (z.re == 0),
                              {zero, Choose(IsNan(z.im), NotANumber(z.re), right)}, NanArgument(z));
  open = PickArgument(IsInfiniteArgument(z.im), {zero, right}, open);
  return PickArgument(IsFinite(z), result, open);
}

// -i f(i z)
template <typename Function>
Complex TurnedBy(Function function, Complex z) {
  Complex result = function({-z.im, z.re});
  return {result.im, -result.re};
}

// C library results if a component is NaN: the rotation would confuse it with the other component.
Complex Asinh(Complex z) {
  Complex result = TurnedBy([](Complex w) { return Asin(w); }, z);
  Scalar nan = NotANumber(z.re), has_infinite = IsInfiniteArgument(z.re) | IsInfiniteArgument(z.im);
  Complex open = PickArgument(has_infinite, {CopySign(Infinity(z.re), z.re), nan}, NanArgument(z));
  open = PickArgument(z.im == 0, {nan, z.im}, open);
  return PickArgument(IsNan(z.re) | IsNan(z.im), open, result);
}

Complex Atan(Complex z) {
  Complex result = TurnedBy([](Complex w) { return Atanh(w); }, z);
  Scalar nan = NotANumber(z.re), zero = Signed(0, z.im), right = Signed(kComplexHalfPi, z.re);
  Complex open = PickArgument(z.im == 0, {nan, zero}, NanArgument(z));
  open = PickArgument(IsInfiniteArgument(z.im), {Choose(IsNan(z.re), nan, right), zero}, open);
  open = PickArgument(IsInfiniteArgument(z.re), {right, zero}, open);
  return PickArgument(IsFinite(z), result, open);
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
