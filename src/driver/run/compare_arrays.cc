#include "driver/run/compare_arrays.h"

#include <algorithm>
#include <cmath>
#include <complex>

#include <fmt/format.h>

namespace tokamak {
namespace {

double DefaultTolerance(ElementType type) {
  int bits = InfoOf(RealPartOf(type)).bits;
  if (bits <= 8) return 1e-1;
  return bits <= 16 ? 2e-2 : 1e-4;
}

// The bits of a real as an integer that orders like the numbers.
int64_t OrderedBits(ElementType type, double value) {
  int bits = InfoOf(type).bits;
  uint64_t raw = EncodeFloat(type, value);
  if (!FormatOf(type).has_sign) return static_cast<int64_t>(raw);
  uint64_t sign = uint64_t{1} << (bits - 1);
  auto magnitude = static_cast<int64_t>(raw & (sign - 1));
  return (raw & sign) != 0 ? -magnitude : magnitude;
}

struct Bounds {
  double rtol, atol;
  int64_t ulp;
};

Bounds BoundsFor(ElementType type, const Tolerance& tolerance) {
  bool ulp_alone = tolerance.ulp >= 0 && !tolerance.rtol && !tolerance.atol;
  double fallback = ulp_alone ? 0.0 : DefaultTolerance(type);
  // If only one of rtol and atol is set, the other is 0.
  bool one = tolerance.rtol.has_value() != tolerance.atol.has_value();
  if (one) fallback = 0.0;
  return {tolerance.rtol.value_or(fallback), tolerance.atol.value_or(fallback), tolerance.ulp};
}

bool CloseReal(ElementType type, double got, double expected, const Bounds& bounds) {
  if (got == expected || (std::isnan(got) && std::isnan(expected))) return true;
  if (!std::isfinite(got) || !std::isfinite(expected)) return false;
  if (std::abs(got - expected) <= bounds.atol + bounds.rtol * std::abs(expected)) return true;
  return bounds.ulp >= 0 && UlpsBetween(type, got, expected) <= bounds.ulp;
}

bool CloseComplex(ElementType type, std::complex<double> got, std::complex<double> expected,
                  const Bounds& bounds) {
  ElementType part = RealPartOf(type);
  if (CloseReal(part, got.real(), expected.real(), bounds) &&
      CloseReal(part, got.imag(), expected.imag(), bounds))
    return true;
  double error = std::abs(got - expected);
  return std::isfinite(error) && error <= bounds.atol + bounds.rtol * std::abs(expected);
}

bool CloseAt(const Literal& got, const Literal& expected, int64_t i, const Bounds& bounds) {
  ElementType type = got.type();
  if (IsComplex(type)) return CloseComplex(type, got.ComplexAt(i), expected.ComplexAt(i), bounds);
  if (IsReal(type)) return CloseReal(type, got.DoubleAt(i), expected.DoubleAt(i), bounds);
  return got.BitsAt(i) == expected.BitsAt(i);
}

double ErrorAt(const Literal& got, const Literal& expected, int64_t i) {
  if (IsComplex(got.type())) return std::abs(got.ComplexAt(i) - expected.ComplexAt(i));
  return std::abs(got.DoubleAt(i) - expected.DoubleAt(i));
}

std::string IndexText(int64_t i, const Dims& dims) {
  std::string text;
  for (size_t d = dims.size(); d-- > 0;) {
    text = std::to_string(i % dims[d]) + (text.empty() ? "" : "," + text);
    i /= dims[d];
  }
  return "[" + text + "]";
}

std::string RealText(ElementType type, double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  if (type == ElementType::kF64) return fmt::format("{}", value);
  return fmt::format("{}", static_cast<float>(value));
}

}  // namespace

int64_t UlpsBetween(ElementType type, double a, double b) {
  int64_t low = OrderedBits(type, a), high = OrderedBits(type, b);
  if (low > high) std::swap(low, high);
  int64_t steps = 0;
  return __builtin_sub_overflow(high, low, &steps) ? INT64_MAX : steps;
}

std::string DifferenceBeyond(std::span<const Literal> opinions, const Literal& expected,
                             const Tolerance& tolerance, int64_t count) {
  const Literal& got = opinions[0];
  Bounds bounds = BoundsFor(got.type(), tolerance);
  int64_t first = -1, mismatches = 0;
  double worst = 0;
  for (int64_t i = 0; i < count; ++i) {
    auto close = [&](const Literal& opinion) { return CloseAt(opinion, expected, i, bounds); };
    if (std::any_of(opinions.begin(), opinions.end(), close)) continue;
    if (first < 0) first = i;
    ++mismatches;
    double error = ErrorAt(got, expected, i);
    if (std::isnan(error) || error > worst) worst = error;
  }
  if (mismatches == 0) return {};
  return fmt::format(
      "{} of {} elements differ; the first at {}: got {}, expected {}; worst error {:.4g}",
      mismatches, count, IndexText(first, got.shape().dims()), ElementText(got, first),
      ElementText(expected, first), worst);
}

std::string ElementText(const Literal& literal, int64_t i) {
  ElementType type = literal.type();
  switch (KindOf(type)) {
    case TypeKind::kBool:
      return literal.BitsAt(i) != 0 ? "true" : "false";
    case TypeKind::kSigned:
      return std::to_string(literal.IntAt(i));
    case TypeKind::kUnsigned:
      return std::to_string(literal.BitsAt(i));
    case TypeKind::kReal:
      return RealText(type, literal.DoubleAt(i));
    case TypeKind::kComplex: {
      std::complex<double> value = literal.ComplexAt(i);
      ElementType part = RealPartOf(type);
      return "(" + RealText(part, value.real()) + ", " + RealText(part, value.imag()) + ")";
    }
  }
  return {};
}

std::string ArrayText(const Literal& literal, int64_t limit) {
  std::string text = ToString(literal.shape()) + " {";
  int64_t count = literal.shape().ElementCount();
  for (int64_t i = 0; i < std::min(count, limit); ++i)
    text += (i == 0 ? "" : ", ") + ElementText(literal, i);
  return text + (count > limit ? ", ...}" : "}");
}

}  // namespace tokamak
