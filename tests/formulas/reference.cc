#include "formulas/reference.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace tokamak {
namespace {

using Wide = long double;

bool IsFunction(Op op) {
  switch (op) {
    case Op::kExp:
    case Op::kExpm1:
    case Op::kLog:
    case Op::kLog1p:
    case Op::kLogistic:
    case Op::kCbrt:
    case Op::kRsqrt:
    case Op::kSin:
    case Op::kCos:
    case Op::kTan:
    case Op::kTanh:
    case Op::kAcos:
    case Op::kAcosh:
    case Op::kAsin:
    case Op::kAsinh:
    case Op::kAtan:
    case Op::kAtanh:
    case Op::kSinh:
    case Op::kCosh:
    case Op::kErf:
    case Op::kErfc:
    case Op::kErfInv:
    case Op::kLgamma:
    case Op::kDigamma:
    case Op::kBesselI1e:
    case Op::kPower:
    case Op::kAtan2:
    case Op::kPolygamma:
    case Op::kZeta:
      return true;
    default:
      return false;
  }
}

bool IsGammaLike(Op op) {
  return op == Op::kLgamma || op == Op::kDigamma || op == Op::kPolygamma || op == Op::kZeta;
}

using WideFn = Wide (*)(Wide);
WideFn WideFunction(Op op) {
  switch (op) {
    case Op::kExp:
      return [](Wide x) { return std::exp(x); };
    case Op::kExpm1:
      return [](Wide x) { return std::expm1(x); };
    case Op::kLog:
      return [](Wide x) { return std::log(x); };
    case Op::kLog1p:
      return [](Wide x) { return std::log1p(x); };
    case Op::kCbrt:
      return [](Wide x) { return std::cbrt(x); };
    case Op::kRsqrt:
      return [](Wide x) { return 1 / std::sqrt(x); };
    case Op::kSin:
      return [](Wide x) { return std::sin(x); };
    case Op::kCos:
      return [](Wide x) { return std::cos(x); };
    case Op::kTan:
      return [](Wide x) { return std::tan(x); };
    case Op::kTanh:
      return [](Wide x) { return std::tanh(x); };
    case Op::kAcos:
      return [](Wide x) { return std::acos(x); };
    case Op::kAcosh:
      return [](Wide x) { return std::acosh(x); };
    case Op::kAsin:
      return [](Wide x) { return std::asin(x); };
    case Op::kAsinh:
      return [](Wide x) { return std::asinh(x); };
    case Op::kAtan:
      return [](Wide x) { return std::atan(x); };
    case Op::kAtanh:
      return [](Wide x) { return std::atanh(x); };
    case Op::kSinh:
      return [](Wide x) { return std::sinh(x); };
    case Op::kCosh:
      return [](Wide x) { return std::cosh(x); };
    case Op::kErf:
      return [](Wide x) { return std::erf(x); };
    case Op::kErfc:
      return [](Wide x) { return std::erfc(x); };
    case Op::kLogistic:
      return [](Wide x) { return 1 / (1 + std::exp(-x)); };
    default:
      return nullptr;
  }
}

// One unit in the last place of a type at a value.
Wide UlpAt(ElementType type, Wide value) {
  const FloatFormat& format = FormatOf(type);
  int least = 1 - format.bias;
  int exponent = value == 0 ? least : std::max(std::ilogb(value), least);
  return std::ldexp(Wide{1}, exponent - format.mantissa_bits);
}

Wide LargestOf(ElementType type) {
  const FloatFormat& format = FormatOf(type);
  int exponent = (1 << format.exponent_bits) - 1 - format.bias;
  return std::ldexp(Wide{1}, exponent);  // the exponent of infinity
}

}  // namespace

Tolerance ToleranceOf(Op op, ElementType type, ElementType from) {
  if (IsComplex(from)) {
    bool computes = IsFunction(op) || op == Op::kMultiply || op == Op::kDivide ||
                    op == Op::kSquare || op == Op::kSign || op == Op::kSqrt || op == Op::kAbs;
    return computes ? Tolerance{false, 8} : Tolerance{};
  }
  if (!IsFunction(op) || !IsReal(type)) return {};
  if (IsGammaLike(op)) return {false, 8, true};
  if (InfoOf(type).bits < 32) return {false, 1};
  return {false, type == ElementType::kF32 ? 2.0 : 4.0};
}

size_t CountFor(Op op, ElementType from) {
  if (IsGammaLike(op) || op == Op::kErfInv || op == Op::kBesselI1e) return 1000;
  if (!IsFunction(op)) return 2000;
  return InfoOf(from).bits >= 32 ? 20000 : 2000;
}

Exact ExactOf(double x) {
  return {{x, 0}, false};
}
Exact ExactOf(std::complex<double> z) {
  return {{z.real(), z.imag()}, true};
}

void Refine(Op op, const std::vector<ElementType>& operands, const std::vector<Column>& columns,
            size_t row, Exact& exact) {
  if (operands[0] == ElementType::kC128 && op == Op::kLogistic) {
    // Near the poles 1 + e^-z cancels; the tangent does not.
    std::complex<Wide> half(std::bit_cast<double>(columns[0][row]) / Wide{2},
                            std::bit_cast<double>(columns[1][row]) / Wide{2});
    if (!(std::hypot(exact.part[0], exact.part[1]) > 2)) return;
    std::complex<Wide> result = (Wide{1} + std::tanh(half)) / Wide{2};
    exact.part[0] = result.real();
    exact.part[1] = result.imag();
    return;
  }
  if (operands[0] != ElementType::kF64 || exact.is_complex) return;
  Wide x = std::bit_cast<double>(columns[0][row]);
  if (!std::isfinite(exact.part[0])) return;  // the reference semantics decide
  if (WideFn fn = WideFunction(op)) {
    exact.part[0] = fn(x);
  } else if (op == Op::kPower) {
    exact.part[0] = std::pow(x, Wide{std::bit_cast<double>(columns[1][row])});
  } else if (op == Op::kAtan2) {
    exact.part[0] = std::atan2(x, Wide{std::bit_cast<double>(columns[1][row])});
  }
}

bool IsBeyondSense(Op op, const std::vector<ElementType>& operands,
                   const std::vector<Column>& columns, size_t row, const Exact& exact) {
  // For large negative arguments the logarithm and the tangent term of digamma cancel, both
  // rounded: up to 12 ulp.
  if (op == Op::kDigamma && operands[0] == ElementType::kF64 &&
      std::bit_cast<double>(columns[0][row]) < -100)
    return true;
  // The reference factorial overflows, times a zeta that underflows; or it takes the difference of
  // two infinite powers.
  if (op == Op::kPolygamma && DecodeFloat(operands[0], columns[0][row]) > 150) return true;
  if (op == Op::kZeta && DecodeFloat(operands[0], columns[0][row]) > 1e4 &&
      DecodeFloat(operands[1], columns[1][row]) < 0)
    return true;
  if (op != Op::kPower || !IsComplex(operands[0])) return false;
  ElementType part = RealPartOf(operands[0]);
  if (!std::isfinite(exact.part[0]) || !std::isfinite(exact.part[1])) return true;
  return std::fabs(DecodeFloat(part, columns[2][row])) > 1e4 ||
         std::fabs(DecodeFloat(part, columns[3][row])) > 1e4;
}

double UlpsOff(ElementType part, const double* got, const Exact& exact,
               const Tolerance& tolerance) {
  constexpr double kNever = std::numeric_limits<double>::infinity();
  Wide size = std::fabs(exact.part[0]);
  if (exact.is_complex && std::isfinite(exact.part[0]) && std::isfinite(exact.part[1]))
    size = std::hypot(exact.part[0], exact.part[1]);
  if (tolerance.of_one) size = std::max<Wide>(size, 1);
  double most = 0;
  for (int i = 0; i < (exact.is_complex ? 2 : 1); ++i) {
    Wide want = exact.part[i], have = got[i], limit = LargestOf(part);
    double rounded = RoundToType(part, static_cast<double>(want));
    bool saturates = FormatOf(part).nan == FloatFormat::Nan::kNone;
    if (saturates && !(std::fabs(want) < std::fabs(RoundToType(part, HUGE_VAL))))
      want = rounded;  // saturates
    // Next to an infinite part the other one is ignored.
    if (exact.is_complex && std::isfinite(rounded) &&
        std::isinf(RoundToType(part, static_cast<double>(exact.part[1 - i]))))
      continue;
    if (std::isnan(want) || std::isnan(rounded)) {
      if (!std::isnan(have)) return kNever;
      continue;
    }
    if (std::isnan(have)) return kNever;
    if (have == want || (std::isinf(have) && have == rounded)) {
      if (want == 0 && std::signbit(have) != std::signbit(want) && !exact.is_complex &&
          FormatOf(part).nan != FloatFormat::Nan::kNegativeZero)
        return kNever;
      continue;
    }
    if (std::isinf(want)) return kNever;
    if (std::isinf(have)) have = std::copysign(limit, have);
    Wide ulp = UlpAt(part, exact.is_complex && std::isfinite(size) ? size
                           : tolerance.of_one ? std::max<Wide>(std::fabs(want), 1)
                                              : want);
    most = std::max(most, static_cast<double>(std::fabs(have - want) / ulp));
  }
  return most;
}

}  // namespace tokamak
