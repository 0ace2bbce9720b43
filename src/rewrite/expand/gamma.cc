// The gamma function and its derivatives, after Lanczos (g = 7, nine terms) with reflection below
// one half, and the Hurwitz zeta function by Euler-Maclaurin summation.

#include <array>
#include <numbers>

#include "rewrite/expand/formulas.h"

namespace tokamak {
namespace {

constexpr double kLanczosG = 7;
constexpr double kLanczosBase = 0.99999999999980993;
constexpr std::array kLanczos = {676.5203681218851,     -1259.1392167224028,  771.32342877765313,
                                 -176.61502916214059,   12.507343278686905,   -0.13857109526572012,
                                 9.9843695780195716e-6, 1.5056327351493116e-7};

// B(2k) / (2k)! for k = 12 down to 1, where B are the Bernoulli numbers.
constexpr std::array kEulerMaclaurin = {
    -1.3954464685812522e-19, 5.5090028283602295e-18,  -2.1748686985580617e-16,
    8.5860620562778452e-15,  -3.3896802963225832e-13, 1.3382536530684679e-11,
    -5.2841901386874932e-10, 2.08767569878681e-08,    -8.2671957671957675e-07,
    3.3068783068783071e-05,  -0.0013888888888888889,  0.083333333333333329};

// The argument of the Lanczos sum: x - 1, reflected below one half.
Term Shifted(Term x) {
  return Select(x < 0.5, -x, x - 1);
}

Term LogOfBase(Term z) {
  constexpr double kLogOfSevenAndHalf = 2.0149030205422647;
  return kLogOfSevenAndHalf + Log1p(z / (kLanczosG + 0.5));
}

}  // namespace

Term ExpandLgamma(Term x) {
  constexpr double kHalfLogTwoPi = 0.91893853320467267, kLogPi = 1.1447298858494002;
  Term z = Shifted(x);
  Term sum = z.Number(kLanczosBase);
  for (size_t i = 0; i < kLanczos.size(); ++i)
    sum = sum + kLanczos[i] / (z + static_cast<double>(i + 1));
  Term log = LogOfBase(z);
  Term direct = (((z + 0.5) - (z + (kLanczosG + 0.5)) / log) * log + kHalfLogTwoPi) + Log(sum);

  Term fraction = Abs(x) - Floor(Abs(x));
  Term scaled = Select(fraction > 0.5, 1 - fraction, fraction);
  Term log_sine = Log(Sin(scaled * std::numbers::pi));
  Term reflected = Select(IsFinite(log_sine), (kLogPi - log_sine) - direct, -log_sine);
  return Select(Abs(x) == x.Infinity(), x.Infinity(), Select(x < 0.5, reflected, direct));
}

Term ExpandDigamma(Term x) {
  Term z = Shifted(x);
  Term below = z.Number(kLanczosBase), above = z.Number(0);
  for (size_t i = 0; i < kLanczos.size(); ++i) {
    Term at = z + static_cast<double>(i + 1);
    above = above - kLanczos[i] / (at * at);
    below = below + kLanczos[i] / at;
  }
  Term direct = (LogOfBase(z) + above / below) - kLanczosG / (z + (kLanczosG + 0.5));

  Term angle = (x + Abs(Floor(x + 0.5))) * std::numbers::pi;
  Term reflected = direct - Cos(angle) * std::numbers::pi / Sin(angle);
  Term at_pole = (x <= 0) & (x == Floor(x));
  return Select(at_pole, x.NaN(), Select(x < 0.5, reflected, direct));
}

Term ExpandZeta(Term x, Term q) {
  constexpr int kSummed = 10;
  Term at = q, sum = Pow(q, -x);
  for (int i = 1; i < kSummed; ++i) {
    at = at + 1;
    sum = sum + Pow(at, -x);
  }
  at = at + 1;
  Term power = Pow(at, -x);
  Term inverse_square = 1 / (at * at);
  Term tail = x.Number(kEulerMaclaurin[0]);
  for (size_t i = 1; i < kEulerMaclaurin.size(); ++i) {
    double k = static_cast<double>(2 * (kEulerMaclaurin.size() - i));
    tail = ((x + k) * (x + (k - 1))) * (inverse_square * tail) + kEulerMaclaurin[i];
  }
  Term whole = (sum + power * at / (x - 1)) + power * ((x / at) * tail + 0.5);

  bool single = x.type() == ElementType::kF32;
  double smallest =
      single ? std::numeric_limits<float>::denorm_min() : std::numeric_limits<double>::denorm_min();
  Term value = Select(Abs(power) < Abs(sum) * smallest, sum, whole);
  value = Select(x < 1, x.NaN(), value);
  value = Select((q <= 0) & (x != Floor(x)), x.NaN(), value);
  Term even = (x == Floor(x)) & (Rem(x, 2) == 0);
  value = Select((q <= 0) & (q == Floor(q)), Select(even, x.Infinity(), x.NaN()), value);
  return Select(x == 1, x.Infinity(), value);
}

Term ExpandPolygamma(Term n, Term x) {
  Term sign = Rem(n, 2) * 2 - 1;
  Term value = (sign * Exp(ExpandLgamma(n + 1))) * ExpandZeta(n + 1, x);
  value = Select(n == 0, ExpandDigamma(x), value);
  return Select((n != Floor(n)) | (n < 0), x.NaN(), value);
}

}  // namespace tokamak
