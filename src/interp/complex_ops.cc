// Elementwise ops on complex numbers, using the C99 library functions: branch cuts, signed zeros
// and infinities follow Annex G. c64 is computed in double, c128 in long double.

#include <cmath>
#include <complex>
#include <limits>

#include "interp/scalar_ops.h"

namespace tokamak {
namespace {

template <typename P>
using C = std::complex<P>;

// Computes with real and imaginary parts of type P.
template <typename P, C<P> (*kFn)(C<P>)>
Complex In(Complex z) {
  C<P> result = kFn({static_cast<P>(z.real()), static_cast<P>(z.imag())});
  return {static_cast<double>(result.real()), static_cast<double>(result.imag())};
}
template <typename P, C<P> (*kFn)(C<P>, C<P>)>
Complex In2(Complex x, Complex y) {
  C<P> result = kFn({static_cast<P>(x.real()), static_cast<P>(x.imag())},
                    {static_cast<P>(y.real()), static_cast<P>(y.imag())});
  return {static_cast<double>(result.real()), static_cast<double>(result.imag())};
}

template <typename P>
struct Functions {
  static constexpr P kNan = std::numeric_limits<P>::quiet_NaN();

  static C<P> Sign(C<P> z) {
    if (std::isnan(z.real()) || std::isnan(z.imag())) return {kNan, kNan};
    P modulus = std::hypot(z.real(), z.imag());
    if (modulus == 0) return z;
    return {z.real() / modulus, z.imag() / modulus};
  }
  static bool IsFinite(C<P> z) { return std::isfinite(z.real()) && std::isfinite(z.imag()); }
  // An infinite value with a non-finite imaginary part has no defined angle: the result is all NaN,
  // as in XLA, whereas Annex G of the C standard preserves the known modulus.
  static bool HasNoAngle(C<P> z) { return std::isinf(z.real()) && !std::isfinite(z.imag()); }
  static C<P> Exp(C<P> z) {
    // A real number stays real, even if e^x is infinite.
    if (z.imag() == 0) return {std::exp(z.real()), z.imag()};
    return std::exp(z);
  }
  // e^x cos y - 1 = (e^x - 1) cos y - 2 sin^2(y/2).
  static C<P> Expm1(C<P> z) {
    P x = z.real(), y = z.imag();
    if (y == 0) return {std::expm1(x), y};
    if (HasNoAngle(z)) return {kNan, kNan};
    if (!std::isfinite(x) || !std::isfinite(y) || x > 11) {
      C<P> e = std::exp(z);
      return {e.real() - 1, e.imag()};
    }
    P half = std::sin(y / 2);
    return {std::expm1(x) * std::cos(y) - 2 * half * half, std::exp(x) * std::sin(y)};
  }
  static C<P> Log(C<P> z) { return std::log(z); }
  // log|1+z| = log1p(2x + x^2 + y^2) / 2, with an exact sum where it cancels.
  static C<P> Log1p(C<P> z) {
    P x = z.real(), y = z.imag();
    P angle = std::atan2(y, 1 + x);
    P size = std::max(std::fabs(x), std::fabs(y));
    C<P> moved{1 + x, y};
    if (!(size < 8)) return {std::log(moved).real(), angle};
    P xx = x * x, yy = y * y;
    P xx_rest = std::fma(x, x, -xx), yy_rest = std::fma(y, y, -yy);
    P rest = xx_rest + yy_rest;
    auto add = [&rest](P a, P b) {
      P sum = a + b, part = sum - a;
      rest += (a - (sum - part)) + (b - part);
      return sum;
    };
    P sum = add(add(2 * x, xx), yy);
    // 1 + x is exact here, and log1p is steep
    if (sum < P(-0.5)) return {std::log(moved).real(), angle};
    return {std::log1p(sum + rest) / 2, angle};
  }
  static C<P> Logistic(C<P> z) { return C<P>(1) / (C<P>(1) + Exp(-z)); }
  // On the branch cut, -0 counts as 0: XLA's expansion of the square root tests y < 0.
  static C<P> Sqrt(C<P> z) {
    return std::sqrt(z.imag() == 0 ? C<P>(z.real(), std::fabs(z.imag())) : z);
  }
  static C<P> Rsqrt(C<P> z) { return C<P>(1) / std::sqrt(z); }
  static C<P> Cbrt(C<P> z) {
    if (z.real() == 0 && z.imag() == 0) return z;
    P modulus = std::cbrt(std::hypot(z.real(), z.imag()));
    P angle = std::atan2(z.imag(), z.real()) / 3;
    return {modulus * std::cos(angle), modulus * std::sin(angle)};
  }
  static C<P> Sin(C<P> z) { return std::sin(z); }
  static C<P> Cos(C<P> z) { return std::cos(z); }
  static C<P> Tan(C<P> z) {
    if (std::isinf(z.real()) && std::isfinite(z.imag())) return {kNan, kNan};
    return std::tan(z);
  }
  static C<P> Sinh(C<P> z) { return HasNoAngle(z) ? C<P>(kNan, kNan) : std::sinh(z); }
  static C<P> Cosh(C<P> z) { return HasNoAngle(z) ? C<P>(kNan, kNan) : std::cosh(z); }
  static C<P> Tanh(C<P> z) {
    if (std::isfinite(z.real()) && std::isinf(z.imag())) return {kNan, kNan};
    return std::tanh(z);
  }
  static C<P> Acos(C<P> z) { return std::acos(z); }
  static C<P> Acosh(C<P> z) { return std::acosh(z); }
  static C<P> Asin(C<P> z) { return std::asin(z); }
  static C<P> Asinh(C<P> z) { return std::asinh(z); }
  static C<P> Atan(C<P> z) { return std::atan(z); }
  static C<P> Atanh(C<P> z) { return std::atanh(z); }
  static C<P> Square(C<P> z) {
    P x = z.real(), y = z.imag(), real = (x - y) * (x + y);
    return {real == 0 ? P(0) : real, 2 * x * y};  // x x - y y is never -0
  }

  // As in XLA and NumPy: NaN where Annex G of the C standard gives an infinite product.
  static C<P> Multiply(C<P> x, C<P> y) {
    return {x.real() * y.real() - x.imag() * y.imag(), x.real() * y.imag() + x.imag() * y.real()};
  }
  static C<P> Divide(C<P> x, C<P> y) { return x / y; }
  // As in XLA: among operands that are 0 or not finite, only real ones have a power; z^0 and 1^z
  // are 1 for every z.
  static C<P> Power(C<P> x, C<P> y) {
    constexpr P kInfinity = std::numeric_limits<P>::infinity();
    if (y == C<P>(0) || x == C<P>(1)) return {1, 0};
    bool to_positive = y.imag() == 0 && y.real() > 0, to_negative = y.imag() == 0 && y.real() < 0;
    if (x == C<P>(0)) return to_positive ? C<P>(0) : C<P>(kNan, kNan);
    if (x == C<P>(kInfinity) && to_positive) return {kInfinity, 0};
    if (x == C<P>(kInfinity) && to_negative) return {0, 0};
    if (!IsFinite(x) || !IsFinite(y)) return {kNan, kNan};
    return std::exp(y * std::log(x));
  }
  static C<P> Atan2(C<P> y, C<P> x) {
    C<P> i{0, 1};
    return -i * std::log((x + i * y) / std::sqrt(x * x + y * y));
  }
};

bool LexicallyLess(Complex x, Complex y) {
  return x.real() != y.real() ? x.real() < y.real() : x.imag() < y.imag();
}
bool HasNan(Complex z) {
  return std::isnan(z.real()) || std::isnan(z.imag());
}

template <typename P>
ComplexUnaryFn UnaryIn(Op op) {
  using F = Functions<P>;
  switch (op) {
    case Op::kNegate:
      return [](Complex z) { return -z; };
    case Op::kConj:
      return [](Complex z) { return std::conj(z); };
    case Op::kSign:
      return In<P, F::Sign>;
    case Op::kExp:
      return In<P, F::Exp>;
    case Op::kExpm1:
      return In<P, F::Expm1>;
    case Op::kLog:
      return In<P, F::Log>;
    case Op::kLog1p:
      return In<P, F::Log1p>;
    case Op::kLogistic:
      return In<P, F::Logistic>;
    case Op::kSqrt:
      return In<P, F::Sqrt>;
    case Op::kRsqrt:
      return In<P, F::Rsqrt>;
    case Op::kCbrt:
      return In<P, F::Cbrt>;
    case Op::kSin:
      return In<P, F::Sin>;
    case Op::kCos:
      return In<P, F::Cos>;
    case Op::kTan:
      return In<P, F::Tan>;
    case Op::kTanh:
      return In<P, F::Tanh>;
    case Op::kSinh:
      return In<P, F::Sinh>;
    case Op::kCosh:
      return In<P, F::Cosh>;
    case Op::kAcos:
      return In<P, F::Acos>;
    case Op::kAcosh:
      return In<P, F::Acosh>;
    case Op::kAsin:
      return In<P, F::Asin>;
    case Op::kAsinh:
      return In<P, F::Asinh>;
    case Op::kAtan:
      return In<P, F::Atan>;
    case Op::kAtanh:
      return In<P, F::Atanh>;
    case Op::kSquare:
      return In<P, F::Square>;
    default:
      return nullptr;
  }
}

template <typename P>
ComplexBinaryFn BinaryIn(Op op) {
  using F = Functions<P>;
  switch (op) {
    case Op::kAdd:
      return [](Complex x, Complex y) { return x + y; };
    case Op::kSubtract:
      return [](Complex x, Complex y) { return x - y; };
    case Op::kMultiply:
      return In2<P, F::Multiply>;
    case Op::kDivide:
      return In2<P, F::Divide>;
    case Op::kPower:
      return In2<P, F::Power>;
    case Op::kAtan2:
      return In2<P, F::Atan2>;
    case Op::kMaximum:
      return [](Complex x, Complex y) {
        return HasNan(x) || (!HasNan(y) && LexicallyLess(y, x)) ? x : y;
      };
    case Op::kMinimum:
      return [](Complex x, Complex y) {
        return HasNan(x) || (!HasNan(y) && LexicallyLess(x, y)) ? x : y;
      };
    default:
      return nullptr;
  }
}

}  // namespace

ComplexUnaryFn ComplexUnary(Op op, bool wide) {
  return wide ? UnaryIn<long double>(op) : UnaryIn<double>(op);
}

ComplexBinaryFn ComplexBinary(Op op, bool wide) {
  return wide ? BinaryIn<long double>(op) : BinaryIn<double>(op);
}

}  // namespace tokamak
