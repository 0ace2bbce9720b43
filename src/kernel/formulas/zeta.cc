// The Hurwitz zeta function, and the derivatives of digamma, which are multiples of it. In f64,
// accurate enough for f32 results: powers are exponentials of plain f64 logarithms.

#include "kernel/formulas/functions.h"

namespace tokamak::formulas {
namespace {

// factor * e^log.
struct ScaledSum {
  Scalar log, factor;
};

// The sum of (a + k)^-s over all k >= 0, for s > 1 and a > 0: the first terms directly, the
// remainder by the Euler-Maclaurin formula. Relative to a^-s.
ScaledSum SumOfPowers(Scalar s, Scalar a) {
  constexpr int kSummed = 5;
  Scalar sum = s.Like(1);
  for (int k = 1; k < kSummed; ++k) sum = sum + Exp(-s * Log1p(k / a));
  Scalar power = Exp(-s * Log1p(kSummed / a)), b = a + kSummed, square = 1 / (b * b);
  // B(2j) / (2j)!, in reverse order.
  constexpr double kFactors[] = {-3.3896802963225829e-13, 1.3382536530684679e-11,
                                 -5.2841901386874932e-10, 2.0876756987868099e-8,
                                 -8.2671957671957672e-7,  3.3068783068783069e-5,
                                 -1.3888888888888889e-3,  8.3333333333333333e-2};
  constexpr int kCount = sizeof kFactors / sizeof kFactors[0];
  Scalar tail = s.Like(kFactors[0]);
  for (int i = 1; i < kCount; ++i) {
    double k = 2 * (kCount - i);
    tail = Fma((s + k) * (s + (k - 1)) * square, tail, s.Like(kFactors[i]));
  }
  Scalar whole = Fma(power, b / (s - 1) + Fma(s / b, tail, s.Like(0.5)), sum);
  sum = Choose(power < 1e-20, sum, whole);
  Scalar log = Log(a);
  return {Choose(log == 0, s.Like(0), -s * log), sum};
}

Scalar IsWholeNumber(Scalar x) {
  return FloorOf(x) == x;
}

Scalar IsEven(Scalar x) {
  return FloorOf(x * 0.5) * 2 == x;
}

// e^scale times zeta(s, q), for any arguments.
Scalar ZetaOf(Scalar s, Scalar q, Scalar scale) {
  Scalar one = s.Like(1), zero = s.Like(0), is_positive = q > 0;
  Scalar fraction = q - FloorOf(q), is_sensible = (s > 1) & (AbsOf(q) < Infinity(q));
  auto safe = [&](Scalar a, Scalar holds) { return Choose(is_sensible & holds, a, one); };
  Scalar safe_s = Choose(s > 1, s, s.Like(2)), below = (q < 0) & (fraction > 0);
  ScaledSum main = SumOfPowers(safe_s, safe(Choose(is_positive, q, fraction), is_positive | below));
  // The terms below zero form another zeta function in reverse order. Half-way between two poles
  // large sums cancel, so they are scaled to a common exponent first.
  Scalar sign = Choose(IsEven(s) & (s < Infinity(s)), one, -one);
  ScaledSum mirrored = SumOfPowers(safe_s, safe(FloorOf(q) + 1 - q, below));
  ScaledSum beyond = SumOfPowers(safe_s, safe(1 - q, below));
  Scalar top = GreaterOf(main.log, mirrored.log);
  Scalar both =
      Fma(sign, mirrored.factor * Exp(mirrored.log - top), main.factor * Exp(main.log - top));
  both = Choose(both == 0, zero, both * Exp(top + scale));
  Scalar other = Fma(-sign, beyond.factor * Exp(beyond.log + scale), both);
  Scalar result = Choose(is_positive, main.factor * Exp(main.log + scale), other);
  Scalar not_a_number = NotANumber(s), infinity = Infinity(s);
  result = Choose(q == infinity, zero, result);
  result = Choose((q < 0) & !IsWholeNumber(s), not_a_number, result);
  result = Choose((q <= 0) & (fraction == 0), infinity, result);
  result = Choose(q == -infinity, not_a_number, result);
  result = Choose(s == 1, infinity, result);
  return Choose(s < 1, not_a_number, Choose(IsNan(s) | IsNan(q), not_a_number, result));
}

}  // namespace

Scalar Zeta(Scalar s, Scalar q) {
  return ZetaOf(s, q, s.Like(0));
}

Scalar Polygamma(Scalar n, Scalar x) {
  Scalar is_order = (n >= 0) & IsWholeNumber(n) & (n < Infinity(n));
  Scalar safe = Choose(is_order, n, n.Like(1));
  Scalar value = ZetaOf(safe + 1, x, Lgamma(safe + 1));
  value = Choose(IsEven(safe), -value, value);
  value = Choose(n == 0, Digamma(x), value);
  return Choose(is_order & !IsNan(x), value, NotANumber(n));
}

}  // namespace tokamak::formulas
