#include "interp/special_functions.h"

#include <cmath>
#include <limits>
#include <numbers>

namespace tokamak {
namespace {

using Real = long double;
constexpr Real kPi = std::numbers::pi_v<Real>;
constexpr Real kNotANumber = std::numeric_limits<Real>::quiet_NaN();
constexpr Real kInf = std::numeric_limits<Real>::infinity();

// Bernoulli numbers B_2, B_4 ... B_32.
constexpr Real kBernoulli[] = {1.0L / 6,
                               -1.0L / 30,
                               1.0L / 42,
                               -1.0L / 30,
                               5.0L / 66,
                               -691.0L / 2730,
                               7.0L / 6,
                               -3617.0L / 510,
                               43867.0L / 798,
                               -174611.0L / 330,
                               854513.0L / 138,
                               -236364091.0L / 2730,
                               8553103.0L / 6,
                               -23749461029.0L / 870,
                               8615841276005.0L / 14322,
                               -7709321041217.0L / 510};

// For x > 0: recurrence upwards to where the asymptotic series is accurate.
Real DigammaPositive(Real x) {
  Real sum = 0;
  for (; x < 24; x += 1) sum -= 1 / x;
  Real power = 1, square = 1 / (x * x), tail = 0;
  for (int k = 0; k < 12; ++k) {
    power *= square;
    tail += kBernoulli[k] / (2 * (k + 1)) * power;
  }
  return sum + std::log(x) - 1 / (2 * x) - tail;
}

// Euler-Maclaurin: the head of the sum directly, the rest as an integral with corrections.
Real ZetaPositive(Real s, Real q) {
  constexpr Real kEpsilon = std::numeric_limits<Real>::epsilon();
  Real sum = 0, a = q;
  for (int k = 0; k < 24; ++k, a += 1) {
    Real term = std::pow(a, -s);
    sum += term;
    if (term <= sum * kEpsilon / 64) return sum;
  }
  Real power = std::pow(a, -s);
  sum += power * a / (s - 1) + power / 2;
  Real factor = s * power / (2 * a);  // s (s+1) ... (s+2j-2) / (2j)! * a^(-s-2j+1)
  for (int j = 1; j <= 16; ++j) {
    Real term = kBernoulli[j - 1] * factor;
    sum += term;
    if (std::fabs(term) <= std::fabs(sum) * kEpsilon / 64) break;
    factor *= (s + 2 * j - 1) * (s + 2 * j) / ((2 * j + 1) * (2 * j + 2) * a * a);
  }
  return sum;
}

Real ZetaReal(Real s, Real q) {
  if (std::isnan(s) || std::isnan(q) || s < 1) return kNotANumber;
  if (s == 1) return kInf;
  if (q > 0) return std::isinf(q) ? 0 : ZetaPositive(s, q);
  Real fraction = q - std::floor(q);
  if (fraction == 0) return kInf;
  if (s != std::floor(s)) return kNotANumber;
  // The terms below zero form another zeta function in reverse order.
  Real sign = std::fmod(s, 2) == 0 ? 1 : -1;
  Real both = ZetaPositive(s, fraction) + sign * ZetaPositive(s, 1 - fraction);
  return both - sign * ZetaPositive(s, 1 - q);
}

}  // namespace

double ErfInv(double x) {
  Real target = x, magnitude = std::fabs(target);
  if (std::isnan(target) || magnitude > 1) return static_cast<double>(kNotANumber);
  if (magnitude == 1) return static_cast<double>(std::copysign(kInf, target));
  if (magnitude < 1e-9L) return static_cast<double>(target * std::sqrt(kPi) / 2);
  // A starting value accurate to 1 %, then Halley's method on erf or, near 1, on erfc.
  Real log = std::log1p(-magnitude * magnitude), a = 0.147L;
  Real middle = 2 / (kPi * a) + log / 2;
  Real y = std::sqrt(std::sqrt(middle * middle - log / a) - middle);
  if (magnitude < 1e-3L) y = magnitude * std::sqrt(kPi) / 2;
  for (int i = 0; i < 5; ++i) {
    Real error = magnitude < 0.5L ? std::erf(y) - magnitude : (1 - magnitude) - std::erfc(y);
    Real step = error * std::exp(y * y) * std::sqrt(kPi) / 2;
    y -= step / (1 + y * step);
    if (std::fabs(step) <= 1e-17L * y) break;
  }
  return static_cast<double>(std::copysign(y, target));
}

double Digamma(double x) {
  Real value = x;
  if (std::isnan(x) || (x <= 0 && x == std::floor(x))) return static_cast<double>(kNotANumber);
  if (std::isinf(x)) return x;
  if (value >= 0.5L) return static_cast<double>(DigammaPositive(value));
  // Reflection; the tangent has period 1 in x.
  Real fraction = value - std::nearbyint(value);
  Real cotangent = std::cos(kPi * fraction) / std::sin(kPi * fraction);
  return static_cast<double>(DigammaPositive(1 - value) - kPi * cotangent);
}

double Lgamma(double x) {
  if (std::isinf(x)) return std::numeric_limits<double>::infinity();
  int sign = 0;
  return static_cast<double>(lgammal_r(x, &sign));
}

double Zeta(double s, double q) {
  return static_cast<double>(ZetaReal(s, q));
}

double Polygamma(double n, double x) {
  if (!std::isfinite(n) || std::isnan(x) || n < 0 || n != std::floor(n))
    return static_cast<double>(kNotANumber);
  if (n == 0) return Digamma(x);
  Real sign = std::fmod(n, 2.0) == 0 ? -1 : 1;
  int ignored = 0;
  Real factorial = n < 1000 ? std::tgamma(static_cast<Real>(n) + 1)
                            : std::exp(lgammal_r(static_cast<Real>(n) + 1, &ignored));
  return static_cast<double>(sign * factorial * ZetaReal(static_cast<Real>(n) + 1, x));
}

double BesselI1e(double x) {
  if (std::isnan(x)) return x;
  Real magnitude = std::fabs(static_cast<Real>(x)), result = 0;
  if (std::isinf(magnitude)) {
    result = 0;
  } else if (magnitude < 40) {
    // The power series: no term is negative, so nothing cancels.
    Real half = magnitude / 2, term = half;
    for (int k = 1; term > result * 1e-22L; ++k) {
      result += term;
      term *= half * half / (static_cast<Real>(k) * (k + 1));
    }
    result *= std::exp(-magnitude);
  } else {
    Real term = 1;
    for (int k = 1; k < 60 && std::fabs(term) > 1e-22L; ++k) {
      result += term;
      Real odd = 2 * k - 1;
      term *= -(4 - odd * odd) / (8 * magnitude * k);
    }
    result /= std::sqrt(2 * kPi * magnitude);
  }
  return static_cast<double>(std::copysign(result, static_cast<Real>(x)));
}

}  // namespace tokamak
