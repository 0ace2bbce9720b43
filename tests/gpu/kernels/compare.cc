#include "gpu/kernels/compare.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>

namespace tokamak {
namespace {

// NaNs are equal; everything else is compared bitwise.
template <typename Bits>
bool IsNan(Bits bits, int exponent, int mantissa) {
  Bits top = static_cast<Bits>(((Bits{1} << exponent) - 1) << mantissa);
  Bits low = static_cast<Bits>((Bits{1} << mantissa) - 1);
  return (bits & top) == top && (bits & low) != 0;
}

template <typename Bits>
size_t Differences(const char* got, const char* wanted, size_t bytes, int exponent, int mantissa,
                   size_t& first) {
  size_t count = 0;
  for (size_t i = 0; i < bytes / sizeof(Bits); ++i) {
    Bits x, y;
    std::memcpy(&x, got + i * sizeof(Bits), sizeof(Bits));
    std::memcpy(&y, wanted + i * sizeof(Bits), sizeof(Bits));
    if (x == y) continue;
    if (exponent > 0 && IsNan(x, exponent, mantissa) && IsNan(y, exponent, mantissa)) continue;
    if (count++ == 0) first = i;
  }
  return count;
}

bool IsDot(const std::string& name) {
  return name.starts_with("dot");
}

// dot: x w, of m x k and k x n. dot_gelu: gelu(x w + b). dot_causal: where(i >= j, q k', -inf).
double WantedDot(const Large& l, size_t i) {
  size_t c = i % l.columns, r = i / l.columns % l.rows, batch = i / l.columns / l.rows;
  bool causal = l.name == "dot_causal";
  if (causal && r < c) return -INFINITY;
  double sum = 0;
  for (size_t p = 0; p < l.depth; ++p) {
    size_t of_right = causal ? (batch * l.columns + c) * l.depth + p : p * l.columns + c;
    sum += static_cast<double>(l.x[(batch * l.rows + r) * l.depth + p]) * l.gamma[of_right];
  }
  if (l.name != "dot_gelu") return sum;
  sum += l.beta[c];
  return 0.5 * sum * (1 + std::tanh(0.7978845608028654 * (sum + 0.044715 * sum * sum * sum)));
}

double Wanted(const Large& l, size_t i, std::vector<double>& row) {
  if (IsDot(l.name)) return WantedDot(l, i);
  size_t r = i / l.columns, c = i % l.columns;
  const float* x = l.x.data() + r * l.columns;
  if (l.name == "scale") return 2.0 * l.x[i] + 1.0;
  if (l.name == "transpose") return l.x[(i % l.rows) * l.columns + i / l.rows];
  if (l.name == "column_sum") {
    double sum = 0;
    for (size_t k = 0; k < l.rows; ++k) sum += l.x[k * l.columns + i];
    return sum;
  }
  if (l.name == "row_sum" || l.name == "sum") {
    double sum = 0;
    size_t count = l.name == "sum" ? l.x.size() : l.columns;
    const float* from = l.name == "sum" ? l.x.data() : l.x.data() + i * l.columns;
    for (size_t k = 0; k < count; ++k) sum += from[k];
    return sum;
  }
  if (row.empty() || row[l.columns] != static_cast<double>(r)) {
    row.assign(l.columns + 1, 0);
    double sum = 0, most = -1e300, mean = 0, squares = 0;
    for (size_t k = 0; k < l.columns; ++k) most = std::max<double>(most, x[k]);
    for (size_t k = 0; k < l.columns; ++k) sum += std::exp(x[k] - most);
    for (size_t k = 0; k < l.columns; ++k) mean += x[k] / static_cast<double>(l.columns);
    for (size_t k = 0; k < l.columns; ++k)
      squares += (x[k] - mean) * (x[k] - mean) / static_cast<double>(l.columns);
    for (size_t k = 0; k < l.columns; ++k)
      row[k] = l.name == "softmax"
                   ? std::exp(x[k] - most) / sum
                   : (x[k] - mean) / std::sqrt(squares + 1e-5) * l.gamma[k] + l.beta[k];
    row[l.columns] = static_cast<double>(r);
  }
  return row[c];
}

}  // namespace

float DrawnAt(uint64_t seed, uint64_t i) {
  uint64_t x = i * 0x9e3779b97f4a7c15u + seed * 0xbf58476d1ce4e5b9u;
  x ^= x >> 31;
  x *= 0x94d049bb133111ebu;
  x ^= x >> 29;
  return static_cast<float>(x >> 40) * (2.0f / 16777216.0f) - 1.0f;
}

float FromBf16(uint16_t bits) {
  uint32_t wide = static_cast<uint32_t>(bits) << 16;
  float value;
  std::memcpy(&value, &wide, 4);
  return value;
}

uint16_t ToBf16(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, 4);
  return static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

size_t CountDifferences(const std::string& type, const char* got, const char* wanted, size_t bytes,
                        size_t& first) {
  if (type == "f32" || type == "c64")
    return Differences<uint32_t>(got, wanted, bytes, 8, 23, first);
  if (type == "f64" || type == "c128")
    return Differences<uint64_t>(got, wanted, bytes, 11, 52, first);
  if (type == "bf16") return Differences<uint16_t>(got, wanted, bytes, 8, 7, first);
  if (type == "f16") return Differences<uint16_t>(got, wanted, bytes, 5, 10, first);
  return Differences<uint8_t>(got, wanted, bytes, 0, 0, first);
}

size_t CountMismatches(const Expected& expected, const char* got, const char* wanted,
                       size_t& first) {
  bool narrow = expected.type == "bf16";
  if (!narrow && expected.type != "f32")
    return CountDifferences(expected.type, got, wanted, expected.bytes, first);
  auto value = [&](const char* from, size_t i) {
    uint16_t half = 0;
    float whole = 0;
    std::memcpy(narrow ? static_cast<void*>(&half) : &whole, from + i * (narrow ? 2 : 4),
                narrow ? 2 : 4);
    return narrow ? FromBf16(half) : whole;
  };
  size_t elements = expected.bytes / (narrow ? 2 : 4), count = 0;
  float most = 0;
  for (size_t i = 0; i < elements; ++i)
    if (float y = std::abs(value(wanted, i)); y > most && y < 3e38f) most = y;
  for (size_t i = 0; i < elements; ++i) {
    float x = value(got, i), y = value(wanted, i);
    bool alike = x == y || (std::isnan(x) && std::isnan(y)) ||
                 std::abs(x - y) <= 1e-5f * most + (narrow ? 8e-3f : 1e-5f) * std::abs(y);
    if (!alike && count++ == 0) first = i;
  }
  return count;
}

bool CheckLarge(const Large& l, bool narrow) {
  double worst = 0;
  size_t at = 0;
  bool sums = l.name == "column_sum" || l.name == "row_sum" || l.name == "sum";
  size_t count = l.y.size(), looks = sums ? std::min<size_t>(count, 64) : 4096;
  std::vector<double> row;
  for (size_t k = 0; k < looks; ++k) {
    size_t i = looks == count ? k : (k / 64 * 0x9e3779b9u * 64 + k % 64) % count;
    double wanted = Wanted(l, i, row), got = l.y[i];
    // Results of additions to numbers near 1 are only as accurate as those numbers.
    double least = l.name == "layernorm" ? 1 : 1e-6;
    double scale = sums ? std::sqrt(static_cast<double>(l.x.size()) / static_cast<double>(count))
                        : std::abs(wanted) + least;
    if (IsDot(l.name)) scale = std::sqrt(static_cast<double>(l.depth));
    double error = got == wanted ? 0 : std::abs(got - wanted) / scale;
    if (!(error <= worst)) worst = std::isnan(error) ? 1e30 : error, at = i;
  }
  double allowed = narrow ? 3e-2 : 2e-5;  // several operations round to 8 bits
  // Terms may have been rounded to tf32 before summation.
  if (IsDot(l.name)) allowed = narrow ? 1e-2 : 1e-3;
  if (worst > allowed) std::printf("  element %zu is off by %g\n", at, worst);
  return worst <= allowed;
}

}  // namespace tokamak
