// The logarithm of the gamma function, and its derivative. Below 8, the recurrence shifts the
// argument up by eight in one step; from 8 on, Stirling's series; below 0, reflection.

#include "kernel/formulas/functions.h"

namespace tokamak::formulas {
namespace {

constexpr double kPi = 0x1.921fb54442d18p+1;

Scalar IsWhole(Scalar x) {
  return FloorOf(x) == x;
}

// x (x + 1) ... (x + 7) as two factors, and the sum of 1 / (x + k) times the product. With u = x (x
// + 7) the pairs of factors are u, u + 6, u + 10 and u + 12, which needs few roundings.
struct Factors {
  Scalar first, second, sum;
};
Factors EightFactors(Scalar x) {
  Scalar u = Fma(x, x, x * 7);
  Scalar first = u * (u + 6), second = (u + 10) * (u + 12);
  Scalar sum = Fma(u + 3, second, (u + 11) * first) * Fma(x, x.Like(4), x.Like(14));
  return {first, second, sum};
}

// For x > 0. The logarithms that cancel are double-double.
Scalar LgammaOfPositive(Scalar x) {
  Scalar is_low = x < 8, low = Choose(is_low, x, x.Like(1));
  auto [first, second, sum] = EightFactors(low);
  Scalar product = first * second;
  Scalar z = Choose(is_low, x + 8, x);
  Double log = LogForPower(z);
  // (z - 1/2) log z - z + log(2 pi) / 2 - log(product)
  Double main = Times(Double{z - 0.5, x.Like(0)}, log);
  main = Plus(main, Double{-z, x.Like(0x1.d67f1c864beb5p-1)});
  Double raised = LogForPower(product);
  raised = {Choose(is_low, raised.high, x.Like(0)), Choose(is_low, raised.low, x.Like(0))};
  main = Plus(main, Double{-raised.high, -raised.low});
  Scalar inverse = 1 / z, square = inverse * inverse;
  // Corrects the rounding error of x + 8 with the derivative.
  Scalar lost = Choose(is_low, x - (z - 8), x.Like(0));
  main.low = Fma(lost, Fma(inverse, x.Like(-0.5), log.high), main.low);
  Scalar series =
      Polynomial(square, {0.08333333333333333, -0.002777777777777778, 0.0007936507936507937,
                          -0.0005952380952380953, 0.0008417508417508417, -0.0019175269175269176,
                          0.00641025641025641, -0.029550653594771242, 0.17964437236883057,
                          -1.3924322169059011});
  return main.high + Fma(series, inverse, main.low);
}

// For x > 0: log z - 1/(2 z) - ..., minus the sum of 1 / (x + k), which is one quotient.
Scalar DigammaOfPositive(Scalar x) {
  Scalar is_low = x < 8, low = Choose(is_low, x, x.Like(1));
  auto [first, second, sum] = EightFactors(low);
  Scalar z = Choose(is_low, x + 8, x), inverse = 1 / z, square = inverse * inverse;
  Scalar series = Polynomial(
      square, {-0.08333333333333333, 0.008333333333333333, -0.003968253968253968,
               0.004166666666666667, -0.007575757575757576, 0.021092796092796094,
               -0.08333333333333333, 0.4432598039215686, -3.0539543302701198, 26.456212121212122});
  Scalar result = Log(z) + Fma(series, square, inverse * -0.5);
  return Choose(is_low, result - sum / (first * second), result);
}

}  // namespace

Scalar Lgamma(Scalar x) {
  Scalar size = AbsOf(x), is_plain = (size > 0) & (size < Infinity(x));
  Scalar positive = LgammaOfPositive(Choose(is_plain, size, x.Like(1)));
  // gamma(x) gamma(-x) = -pi / (x sin(pi x))
  Scalar sin = AbsOf(SinCosOfPi(x).sin);
  Scalar reflected = Log(kPi / (size * sin)) - positive;
  Scalar result = Choose(x < 0, reflected, positive);
  result = Choose(size < 1e-100, -Log(size), result);
  result = Choose((x == 1) | (x == 2), x.Like(0), result);
  result = Choose(x > 2.55e305, Infinity(x), result);
  Scalar is_pole = ((x <= 0) & IsWhole(x)) | (size == Infinity(x));
  result = Choose(is_pole, Infinity(x), result);
  return Choose(IsNan(x), x, result);
}

Scalar Digamma(Scalar x) {
  Scalar size = AbsOf(x), is_plain = (size > 0) & (size < Infinity(x));
  Scalar plain = Choose(is_plain, size, x.Like(1));
  Scalar positive = DigammaOfPositive(Choose(x < 0, plain + 1, plain));
  // psi(x) = psi(1 - x) - pi cot(pi x)
  auto [sin, cos] = SinCosOfPi(x);
  Scalar result = Choose(x < 0, positive - (cos / sin) * kPi, positive);
  result = Choose(size < 1e-100, -1 / x, result);
  result = Choose(x == Infinity(x), x, result);
  return Choose((x <= 0) & IsWhole(x), NotANumber(x), Choose(IsNan(x), x, result));
}

}  // namespace tokamak::formulas
