// Elementwise ops on reals: the C++ function of each.

#include <cmath>
#include <limits>

#include "interp/scalar_ops.h"
#include "interp/special_functions.h"

namespace tokamak {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

double Sign(double x) {
  if (std::isnan(x) || x == 0) return x;
  return x > 0 ? 1 : -1;
}

double Logistic(double x) {
  // e^-x overflows a double long before the result underflows.
  return static_cast<double>(1 / (1 + std::exp(-static_cast<long double>(x))));
}

// IEEE 754-2019 maximum and minimum: NaN wins, -0 is less than 0.
double Maximum(double x, double y) {
  if (std::isnan(x) || std::isnan(y)) return kNan;
  if (x == y) return std::signbit(x) ? y : x;
  return x > y ? x : y;
}
double Minimum(double x, double y) {
  if (std::isnan(x) || std::isnan(y)) return kNan;
  if (x == y) return std::signbit(x) ? x : y;
  return x < y ? x : y;
}

double ErfcWide(double x) {
  return static_cast<double>(std::erfc(static_cast<long double>(x)));
}
double CbrtWide(double x) {
  return static_cast<double>(std::cbrt(static_cast<long double>(x)));
}
double TanhWide(double x) {
  return static_cast<double>(std::tanh(static_cast<long double>(x)));
}
double LgammaNarrow(double x) {
  if (std::isinf(x)) return std::numeric_limits<double>::infinity();
  int sign = 0;
  return lgamma_r(x, &sign);
}

}  // namespace

// long: a table with one line per op
RealUnaryFn RealUnary(Op op, bool wide) {
  switch (op) {
    case Op::kAbs:
      return [](double x) { return std::fabs(x); };
    case Op::kNegate:
      return [](double x) { return -x; };
    case Op::kSign:
      return Sign;
    case Op::kExp:
      return [](double x) { return std::exp(x); };
    case Op::kExpm1:
      return [](double x) { return std::expm1(x); };
    case Op::kLog:
      return [](double x) { return std::log(x); };
    case Op::kLog1p:
      return [](double x) { return std::log1p(x); };
    case Op::kLogistic:
      if (wide) return Logistic;
      return [](double x) { return 1 / (1 + std::exp(-x)); };
    case Op::kSqrt:
      return [](double x) { return std::sqrt(x); };
    case Op::kRsqrt:
      return [](double x) { return 1 / std::sqrt(x); };
    case Op::kCbrt:
      if (wide) return CbrtWide;
      return [](double x) { return std::cbrt(x); };
    case Op::kSin:
      return [](double x) { return std::sin(x); };
    case Op::kCos:
      return [](double x) { return std::cos(x); };
    case Op::kTan:
      return [](double x) { return std::tan(x); };
    case Op::kTanh:
      if (wide) return TanhWide;
      return [](double x) { return std::tanh(x); };
    case Op::kCeil:
      return [](double x) { return std::ceil(x); };
    case Op::kFloor:
      return [](double x) { return std::floor(x); };
    case Op::kRoundAfz:
      return [](double x) { return std::round(x); };
    case Op::kRoundEven:
      return [](double x) { return std::nearbyint(x); };
    case Op::kReal:
    case Op::kConj:
      return [](double x) { return x; };
    case Op::kImag:
      return [](double) { return 0.0; };
    case Op::kAcos:
      return [](double x) { return std::acos(x); };
    case Op::kAcosh:
      return [](double x) { return std::acosh(x); };
    case Op::kAsin:
      return [](double x) { return std::asin(x); };
    case Op::kAsinh:
      return [](double x) { return std::asinh(x); };
    case Op::kAtan:
      return [](double x) { return std::atan(x); };
    case Op::kAtanh:
      return [](double x) { return std::atanh(x); };
    case Op::kSinh:
      return [](double x) { return std::sinh(x); };
    case Op::kCosh:
      return [](double x) { return std::cosh(x); };
    case Op::kErf:
      return [](double x) { return std::erf(x); };
    case Op::kErfc:
      if (wide) return ErfcWide;
      return [](double x) { return std::erfc(x); };
    case Op::kErfInv:
      return ErfInv;
    case Op::kLgamma:
      return wide ? Lgamma : LgammaNarrow;
    case Op::kDigamma:
      return Digamma;
    case Op::kBesselI1e:
      return BesselI1e;
    case Op::kSquare:
      return [](double x) { return x * x; };
    default:
      return nullptr;
  }
}

RealBinaryFn RealBinary(Op op, bool) {
  switch (op) {
    case Op::kAdd:
      return [](double x, double y) { return x + y; };
    case Op::kSubtract:
      return [](double x, double y) { return x - y; };
    case Op::kMultiply:
      return [](double x, double y) { return x * y; };
    case Op::kDivide:
      return [](double x, double y) { return x / y; };
    case Op::kRemainder:
      return [](double x, double y) { return std::fmod(x, y); };
    case Op::kPower:
      return [](double x, double y) { return std::pow(x, y); };
    case Op::kMaximum:
      return Maximum;
    case Op::kMinimum:
      return Minimum;
    case Op::kAtan2:
      return [](double x, double y) { return std::atan2(x, y); };
    case Op::kPolygamma:
      return Polygamma;
    case Op::kZeta:
      return Zeta;
    default:
      return nullptr;
  }
}

RealTestFn RealTest(Op op) {
  switch (op) {
    case Op::kIsFinite:
      return [](double x) { return std::isfinite(x); };
    case Op::kIsInf:
      return [](double x) { return std::isinf(x); };
    case Op::kIsPosInf:
      return [](double x) { return std::isinf(x) && x > 0; };
    case Op::kIsNegInf:
      return [](double x) { return std::isinf(x) && x < 0; };
    default:
      return nullptr;
  }
}

}  // namespace tokamak
