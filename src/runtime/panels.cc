#include "runtime/panels.h"

#include <algorithm>
#include <cmath>

#include "runtime/clones.h"

namespace tokamak::panels {
namespace {

// Doubles per vector (512 bits).
constexpr int64_t kLanes = 8;
// Rows of a tile, and depth of a product before the next tile: their factors stay in the L1 cache.
// Chosen; no measurement on record.
constexpr int64_t kRows = 4, kDepth = 128;

typedef double Vector __attribute__((vector_size(64)));

// A vector at any address. No function takes or returns vectors: their calling convention depends
// on the instruction set.
typedef double Unaligned __attribute__((vector_size(64), aligned(8), may_alias));
#define TOK_AT(address) (*reinterpret_cast<Unaligned*>(address))
#define TOK_FROM(address) (*reinterpret_cast<const Unaligned*>(address))

template <int64_t kTileRows, int64_t kVectors>
TOK_INLINE void SubtractTile(const Product& p, int64_t row, int64_t column, int64_t begin,
                             int64_t end) {
  double* c = p.c + row * p.c_row + column;
  const double *a = p.a + row * p.a_row, *b = p.b + column;
  Vector sums[kTileRows][kVectors];
  for (int64_t r = 0; r < kTileRows; ++r)
    for (int64_t v = 0; v < kVectors; ++v) sums[r][v] = TOK_FROM(c + r * p.c_row + v * kLanes);
  for (int64_t k = begin; k < end; ++k) {
    Vector factors[kVectors];
    for (int64_t v = 0; v < kVectors; ++v) factors[v] = TOK_FROM(b + k * p.width + v * kLanes);
    for (int64_t r = 0; r < kTileRows; ++r) {
      double one = a[r * p.a_row + k];
      for (int64_t v = 0; v < kVectors; ++v) sums[r][v] -= one * factors[v];
    }
  }
  for (int64_t r = 0; r < kTileRows; ++r)
    for (int64_t v = 0; v < kVectors; ++v) TOK_AT(c + r * p.c_row + v * kLanes) = sums[r][v];
}

template <int64_t kVectors>
TOK_INLINE void SubtractColumns(const Product& p, int64_t column, int64_t begin, int64_t end) {
  int64_t row = 0;
  for (; row + kRows <= p.rows; row += kRows)
    SubtractTile<kRows, kVectors>(p, row, column, begin, end);
  for (; row < p.rows; ++row) SubtractTile<1, kVectors>(p, row, column, begin, end);
}

// Solves several rows at once, to hide the latency of each row's divisions.
template <int64_t kTogether>
TOK_INLINE void SolveFewRows(double* a, int64_t row, int64_t size, int64_t width,
                             const double* columns) {
  Vector x[kTogether][kWidth / kLanes];
  double line[kTogether][kWidth] = {};
  for (int64_t r = 0; r < kTogether; ++r) std::copy(a + r * row, a + r * row + size, line[r]);
  int64_t vectors = width / kLanes;
  for (int64_t r = 0; r < kTogether; ++r)
    for (int64_t v = 0; v < vectors; ++v) x[r][v] = TOK_FROM(line[r] + v * kLanes);
  for (int64_t j = 0; j < size; ++j) {
    const double* column = columns + j * width;
    double quotients[kTogether];
    for (int64_t r = 0; r < kTogether; ++r) quotients[r] = x[r][j / kLanes][j % kLanes] / column[j];
    for (int64_t r = 0; r < kTogether; ++r) line[r][j] = quotients[r];
    for (int64_t v = j / kLanes; v < vectors; ++v) {
      Vector factors = TOK_FROM(column + v * kLanes);
      for (int64_t r = 0; r < kTogether; ++r) x[r][v] -= quotients[r] * factors;
    }
  }
  for (int64_t r = 0; r < kTogether; ++r) std::copy(line[r], line[r] + size, a + r * row);
}

}  // namespace

int64_t PaddedWidth(int64_t columns) {
  return columns <= kLanes ? kLanes : columns <= 2 * kLanes ? 2 * kLanes : kWidth;
}

TOK_FUSED_CLONES void SubtractProduct(const Product& p) {
  for (int64_t begin = 0; begin < p.depth; begin += kDepth) {
    int64_t end = std::min(p.depth, begin + kDepth);
    if (p.width == kLanes) {
      SubtractColumns<1>(p, 0, begin, end);
      continue;
    }
    for (int64_t column = 0; column < p.width; column += 2 * kLanes)
      SubtractColumns<2>(p, column, begin, end);
  }
}

TOK_FUSED_CLONES bool FactorBlock(double* a, int64_t row, int64_t size, int64_t width,
                                  double* columns) {
  // Works by columns: the part of a column below the diagonal is a sequence of vectors.
  std::fill(columns, columns + width * width, 0.0);
  for (int64_t j = 0; j < size; ++j)
    for (int64_t i = j; i < size; ++i) columns[j * width + i] = a[i * row + j];
  for (int64_t j = 0; j < size; ++j) {
    double* own = columns + j * width;
    if (!(own[j] > 0)) return false;
    double root = std::sqrt(own[j]);
    int64_t first = j / kLanes * kLanes;
    for (int64_t v = first; v < width; v += kLanes) TOK_AT(own + v) = TOK_FROM(own + v) / root;
    own[j] = root;
    for (int64_t c = first; c < j; ++c) own[c] = 0;
    for (int64_t c = j + 1; c < size; ++c) {
      double factor = own[c];
      double* other = columns + c * width;
      for (int64_t v = c / kLanes * kLanes; v < width; v += kLanes)
        TOK_AT(other + v) -= factor * TOK_FROM(own + v);
    }
  }
  for (int64_t j = 0; j < size; ++j) {
    for (int64_t i = 0; i < j; ++i) columns[j * width + i] = 0;
    for (int64_t i = j; i < size; ++i) a[i * row + j] = columns[j * width + i];
  }
  return true;
}

TOK_FUSED_CLONES void SolveRows(double* a, int64_t row, int64_t rows, int64_t size, int64_t width,
                                const double* columns) {
  int64_t i = 0;
  for (; i + kRows <= rows; i += kRows) SolveFewRows<kRows>(a + i * row, row, size, width, columns);
  for (; i < rows; ++i) SolveFewRows<1>(a + i * row, row, size, width, columns);
}

TOK_FUSED_CLONES void SolveBlock(const double* lower, int64_t row, int64_t size, bool unit,
                                 double* x, int64_t width) {
  for (int64_t i = 0; i < size; ++i) {
    double* own = x + i * width;
    for (int64_t v = 0; v < width; v += kLanes) {
      Vector sum = TOK_FROM(own + v);
      for (int64_t k = 0; k < i; ++k) sum -= lower[i * row + k] * TOK_FROM(x + k * width + v);
      if (!unit) sum /= lower[i * row + i];
      TOK_AT(own + v) = sum;
    }
  }
}

TOK_CLONES void Convert(const float* from, double* to, int64_t count) {
  TOK_IVDEP
  for (int64_t i = 0; i < count; ++i) to[i] = from[i];
}

TOK_CLONES void Convert(const double* from, float* to, int64_t count) {
  TOK_IVDEP
  for (int64_t i = 0; i < count; ++i) to[i] = static_cast<float>(from[i]);
}

}  // namespace tokamak::panels
