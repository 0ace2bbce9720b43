// Functions of complex numbers in terms of their real and imaginary parts, arranged so that
// intermediate results neither overflow nor cancel.

#include <numbers>

#include "rewrite/expand/formulas.h"

namespace tokamak {
namespace {

// x^2 - square, where square is x^2 rounded (Dekker): x is split into halves whose products are
// exact.
Term ErrorOfSquare(Term x, Term square) {
  double splitter = x.type() == ElementType::kF64 ? 134217729 : 4097;
  Term scaled = x * splitter;
  Term high = scaled + (x - scaled);
  Term low = x - high;
  Term cross = high * low;
  return (((-square + high * high) + cross) + cross) + low * low;
}

// A sum and its rounding error.
struct Sum {
  Term value, lost;
};
// Knuth's TwoSum; holds for any operands.
Sum TwoSum(Term x, Term y) {
  Term sum = x + y;
  Term y_rounded = sum - x;
  return {sum, (x - (sum - y_rounded)) + (y - y_rounded)};
}

Term LogOfHypotenuse(Term big, Term square_of_ratio) {
  return Log(big) + 0.5 * Log1p(square_of_ratio);
}

}  // namespace

Term Hypotenuse(Term x, Term y) {
  Term big = Max(x, y), small = Min(x, y);
  Term ratio = small / big;
  Term square = ratio * ratio;
  Term root = Sqrt(1 + square);
  Term rounded_away = (root == 1) & (square > 0);
  return Select(big == small, std::numbers::sqrt2 * big,
                Select(rounded_away, big + big * square / 2, big * root));
}

Term ExpandComplexExp(Term z) {
  Term x = Real(z), y = Imag(z);
  Term whole = Exp(x), half = Exp(x * 0.5);
  Term overflows = whole == x.Infinity();
  auto times = [&](Term part) { return Select(overflows, (half * part) * half, whole * part); };
  return ComplexOf(times(Cos(y)), Select(y == 0, 0, times(Sin(y))));
}

Term ExpandComplexCosh(Term z) {
  Term half = ExpandComplexLog(z.Number(0.5));
  return ExpandComplexExp(z + half) + ExpandComplexExp(half - z);
}

Term ExpandComplexSinh(Term z) {
  Term half = ExpandComplexLog(z.Number(0.5));
  return ExpandComplexExp(z + half) - ExpandComplexExp(half - z);
}

// Near |z| = 1 the logarithm of the modulus is computed from |z|^2 - 1 in double-double precision.
Term ExpandComplexLog(Term z) {
  Term x = Real(z), y = Imag(z);
  Term xx = x * x, yy = y * y;
  Term taller = yy > xx;
  Term bigger = Select(taller, yy, xx), smaller = Select(taller, xx, yy);
  Term x_error = ErrorOfSquare(x, xx), y_error = ErrorOfSquare(y, yy);
  Term sum0 = bigger + -1;
  Term sum1 = sum0 + smaller;
  Term sum2 = sum1 + y_error;
  Term sum3 = sum2 + x_error;
  Term lost = (((bigger - (sum0 - -1)) + (smaller - (sum1 - sum0))) + (y_error - (sum2 - sum1))) +
              (x_error - (sum3 - sum2));
  Term above_one = sum3 + lost;

  Term big = Max(Abs(x), Abs(y)), small = Min(Abs(x), Abs(y));
  Term ratio = Select(small == big, 1, small / big);
  return ComplexOf(
      Select(Abs(above_one) < 0.5, 0.5 * Log1p(above_one), LogOfHypotenuse(big, ratio * ratio)),
      Atan2(y, x));
}

Term ExpandComplexLog1p(Term z) {
  Term x = Real(z), y = Imag(z);
  Term xx = x * x, yy = y * y;
  Sum sum1 = TwoSum(x + x, yy);
  Sum sum2 = TwoSum(sum1.value, xx);
  Sum sum3 = TwoSum(sum2.value, ErrorOfSquare(y, yy));
  Sum sum4 = TwoSum(sum3.value, ErrorOfSquare(x, xx));
  Term lost = ((sum1.lost + sum2.lost) + sum3.lost) + sum4.lost;
  Term near = 0.5 * Log1p(sum4.value + lost);

  Term big = Max(Abs(x), Abs(y)), small = Min(Abs(x), Abs(y));
  Term ratio = small / big;
  Term far = LogOfHypotenuse(big, Select(small == big, 1, ratio * ratio));
  Term from_minus_one = x + 1;
  Term at_zero = 0.5 * Log(from_minus_one * from_minus_one + yy);
  return ComplexOf(Select(big > Sqrt(x.Largest()) * 0.01, far,
                          Select(Abs(from_minus_one) + Abs(y) < 0.2, at_zero, near)),
                   Atan2(y, from_minus_one));
}

Term ExpandComplexSqrt(Term z) {
  constexpr double kSqrt2 = std::numbers::sqrt2;
  // sqrt(1 + sqrt 2) and sqrt(2 + 2 sqrt 2): the parts of a root for |x| = |y|.
  constexpr double kDiagonalReal = 1.5537739740300374, kDiagonalImag = 2.19736822693562;
  Term x = Abs(Real(z)), y = Abs(Imag(z));
  Term sqrt_x = Sqrt(x), sqrt_y = Sqrt(y);
  Term diagonal = x == y, wide = x > y, tall = x < y;
  auto ratio = [&](Term a, Term b) { return Select(diagonal, 1, Select(tall, a / b, b / a)); };
  Term scaled = ratio(x, y);
  Term hypotenuse = Hypotenuse(Abs(scaled), x.Number(1));
  Term wide_root = Sqrt(hypotenuse + 1), tall_root = Sqrt(scaled + hypotenuse);

  Term plain = Sqrt(Hypotenuse(x, y) / 2 + x / 2);
  Term out_of_range = (plain == 0) | (plain == x.Infinity());
  Term big = Select(
      diagonal, sqrt_x * kDiagonalReal / kSqrt2,
      Select(out_of_range,
             Select(wide, sqrt_x * (wide_root / kSqrt2), sqrt_y * (tall_root / kSqrt2)), plain));
  Term small = Select(diagonal, sqrt_y / kDiagonalImag,
                      Select(out_of_range,
                             Select(wide, sqrt_y * ratio(sqrt_x, sqrt_y) / (wide_root * kSqrt2),
                                    sqrt_y / (tall_root * kSqrt2)),
                             y / (plain * 2)));
  Term negative = Imag(z) < 0;
  auto signed_part = [&](Term part) { return Select(negative, -part, part); };
  return ComplexOf(Select(Real(z) >= 0, big, small),
                   Select(Real(z) < 0, signed_part(big), signed_part(small)));
}

Term ExpandComplexSquare(Term z) {
  Term x = Real(z), y = Imag(z);
  Term diagonal = IsFinite(x) & (Abs(x) == Abs(y));
  return ComplexOf(Select(diagonal, 0, (x - y) * (x + y)), x * y * 2);
}

Term ExpandComplexConj(Term z) {
  return ComplexOf(Real(z), -Imag(z));
}

}  // namespace tokamak
