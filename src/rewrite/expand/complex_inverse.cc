// Inverse trigonometric and hyperbolic functions of complex numbers. asin, acos, asinh and acosh
// share one computation (Hull, Fairgrieve and Tang, 1997); atan and atanh share another.

#include <numbers>

#include "rewrite/expand/formulas.h"

namespace tokamak {
namespace {

struct Parts {
  Term real, imag;
};

// For the point (|x|, |y|): the number whose angle with x is the real part of asin, and the
// magnitude of the imaginary part.
Parts InverseSine(Term signed_x, Term signed_y) {
  Term x = Abs(signed_x), y = Abs(signed_y);
  Term safe_max = Sqrt(x.Largest()) / 8, safe_min = Sqrt(x.SmallestNormal()) * 4;
  Term right = x + 1, left = x - 1;
  Term r = Hypotenuse(Abs(right), y), s = Hypotenuse(Abs(left), y);
  Term a = 0.5 * (r + s);
  Term yy = y * y, half_yy = 0.5 * yy, half_sum = 0.5 * (a + x);
  Term r_right = r + right, s_minus = s - left, s_plus = s + left;

  Term beside = Select(x <= 1, Sqrt(half_sum * (yy / r_right + s_minus)),
                       y * Sqrt(half_sum / r_right + half_sum / s_plus));
  Term real = Select(Max(x, y) >= safe_max, y, beside);

  Term limit = Select(x < safe_max * 1e12, safe_max * 1e-6, safe_max * 1e2);
  Term tall = y >= limit;
  Term biggest = Select(tall, y, x);
  Term ratio = Select(tall & !(y == y.Infinity()), x / y, 0);
  Term far = Log(x.Number(2)) + Log(biggest) + 0.5 * Log1p(ratio * ratio);

  Term on_axis = (y < safe_min) & (x < 1);
  Term a_minus_one = Select(on_axis, -(right * left / (a + 1)),
                            Select(x >= 1, half_yy / r_right + 0.5 * s_plus,
                                   Select(a <= 1.5, half_yy / r_right + half_yy / s_minus, a - 1)));
  Term root = Sqrt(a_minus_one * (a + 1));
  Term near = Select(on_axis, y / root, Log1p(a_minus_one + root));
  return {real, Select(biggest >= Select(tall, limit, safe_max), far, near)};
}

Term WithSignOf(Term sign, Term size) {
  return Select(sign < 0, -size, size);
}

Term SignOf(Term x) {
  return Select(x >= 0, x.Number(1), x.Number(-1));
}

Parts InverseTangent(Term x, Term y) {
  double factor = x.type() == ElementType::kF64 ? 9007199254740994 : 16777218;
  Term limit = x.Number(factor) * x.Number(factor);
  Term x_size = Abs(x), y_size = Abs(y);
  Term in_range = (x_size < limit) & (y_size < limit);
  Term from_one = 1 - x_size, yy = y * y;
  auto infinite = [](Term part) { return (part == part.Infinity()) | (part == -part.Infinity()); };
  Term far = Select(y_size * factor < x_size, 1 / x_size,
                    Select(infinite(x) | infinite(y), 0, 1 / (x_size / y + y / x_size) / y));
  Term argument = Select(in_range, x_size / (from_one * from_one + yy), far);
  Term angle =
      Select(in_range, Atan2(y + y, from_one * (1 + x_size) - yy), SignOf(y) * std::numbers::pi);
  return {SignOf(x) * Log1p(4 * argument) * 0.25, angle * 0.5};
}

}  // namespace

Term ExpandComplexAcos(Term z) {
  Parts w = InverseSine(Real(z), Imag(z));
  return ComplexOf(Atan2(w.real, Real(z)), Select(Imag(z) < 0, w.imag, -w.imag));
}

Term ExpandComplexAcosh(Term z) {
  Parts w = InverseSine(Real(z), Imag(z));
  return ComplexOf(w.imag, WithSignOf(Imag(z), Atan2(w.real, Real(z))));
}

Term ExpandComplexAsin(Term z) {
  Parts w = InverseSine(Real(z), Imag(z));
  return ComplexOf(Atan2(Real(z), w.real), WithSignOf(Imag(z), w.imag));
}

Term ExpandComplexAsinh(Term z) {
  Parts w = InverseSine(-Imag(z), Real(z));
  return ComplexOf(WithSignOf(Real(z), w.imag), Atan2(Imag(z), w.real));
}

Term ExpandComplexAtan(Term z) {
  Parts w = InverseTangent(-Imag(z), Real(z));
  return ComplexOf(w.imag, -w.real);
}

Term ExpandComplexAtanh(Term z) {
  Parts w = InverseTangent(Real(z), Imag(z));
  return ComplexOf(w.real, w.imag);
}

}  // namespace tokamak
