// Cholesky factorization and triangular solves of batches of matrices, in double, blocked by panels
// of 32 columns:
//
//   for each panel:  subtract the product of all finished columns      matrix product, in parallel
//                    factor or solve the panel itself                  in the L1 cache
//
// Left-looking: a panel is updated once, when it is reached, and sums accumulate in the order of
// the textbook loop. Results are therefore the same for any number of threads. Every case is
// reduced to the lower triangle and forward substitution: upper factors by transposing, backward
// substitution by reversing rows (EliminationRow), x op(a) = b by solving for x^T. f32 and c64 are
// widened on load and rounded once.

#include "runtime/triangular.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <type_traits>
#include <vector>

#include "runtime/clones.h"
#include "runtime/host_allocator.h"
#include "runtime/panels.h"
#include "runtime/thread_pool.h"
#include "support/check.h"

namespace tokamak {
namespace {

using Complex = std::complex<double>;

// Columns of a panel, which stays in the L1 cache; minimum work per thread; rows per task; minimum
// copied elements per thread. Chosen; no measurement on record.
constexpr int64_t kPanel = 32, kTriangularMinChunk = 1 << 16, kRowGroup = 16,
                  kMinChunkCopied = 1 << 14;
// Systems of up to this many rows are solved by plain loops on the stack: a call may have thousands
// of them. Chosen; no measurement on record.
constexpr int64_t kFewRows = 8;

double Conj(double x) {
  return x;
}
Complex Conj(Complex x) {
  return std::conj(x);
}
double RealOf(Complex x) {
  return x.real();
}
// Written out: operator* of std::complex checks every product for NaN.
[[maybe_unused]] TOK_INLINE double Times(double x, double y) {
  return x * y;
}
TOK_INLINE Complex Times(Complex x, Complex y) {
  return {x.real() * y.real() - x.imag() * y.imag(), x.real() * y.imag() + x.imag() * y.real()};
}

// to[j] -= factors[k] * rows[k * stride + j] for k = 0, 1 ...: in this order for each j.
template <typename T>
TOK_INLINE void SubtractRows(T* __restrict to, int64_t width, const T* factors,
                             const T* __restrict rows, int64_t stride, int64_t count) {
  if (width == kPanel) {  // in registers
    T sums[kPanel];
    for (int64_t j = 0; j < kPanel; ++j) sums[j] = to[j];
    for (int64_t k = 0; k < count; ++k) {
      T factor = factors[k];
      for (int64_t j = 0; j < kPanel; ++j) sums[j] -= Times(factor, rows[k * stride + j]);
    }
    for (int64_t j = 0; j < kPanel; ++j) to[j] = sums[j];
    return;
  }
  for (int64_t k = 0; k < count; ++k) {
    T factor = factors[k];
    for (int64_t j = 0; j < width; ++j) to[j] -= Times(factor, rows[k * stride + j]);
  }
}

TOK_CLONES void Subtract(Complex* to, int64_t width, const Complex* factors, const Complex* rows,
                         int64_t stride, int64_t count) {
  SubtractRows(to, width, factors, rows, stride, count);
}

// Cholesky-factors in place, panel by panel (left-looking): first subtracts the contribution of all
// earlier columns, then factors the panel. Returns false if not positive definite.
template <typename T>
bool Factor(T* a, int64_t n) {
  std::vector<T> panel_transposed;  // rows of the panel so far, as columns, conjugated
  for (int64_t p = 0; p < n; p += kPanel) {
    int64_t width = std::min(kPanel, n - p);
    panel_transposed.resize(static_cast<size_t>(p * width));
    for (int64_t k = 0; k < p; ++k)
      for (int64_t j = 0; j < width; ++j)
        panel_transposed[static_cast<size_t>(k * width + j)] = Conj(a[(p + j) * n + k]);
    int64_t min_chunk = kTriangularMinChunk / std::max<int64_t>(1, p * width) + 1;
    ThreadPool::OfProcess().For(n - p, min_chunk, [&](int64_t begin, int64_t end) {
      for (int64_t i = p + begin; i < p + end; ++i)
        Subtract(a + i * n + p, width, a + i * n, panel_transposed.data(), width, p);
    });
    for (int64_t j = p; j < p + width; ++j) {
      double pivot = RealOf(a[j * n + j]);
      if (!(pivot > 0)) return false;
      T root = std::sqrt(pivot);
      a[j * n + j] = root;
      for (int64_t i = j + 1; i < n; ++i) a[i * n + j] /= root;
      for (int64_t i = j + 1; i < n; ++i) {
        T factor = a[i * n + j];
        for (int64_t c = j + 1; c < std::min(i + 1, p + width); ++c)
          a[i * n + c] -= Times(factor, Conj(a[c * n + j]));
      }
    }
  }
  return true;
}

// Factor for doubles, with the products by tiles (panels.h).
bool Factor(double* a, int64_t n) {
  using panels::kWidth;
  double columns[kWidth * kWidth];
  std::vector<double> panel_transposed;
  for (int64_t p = 0; p < n; p += kWidth) {
    int64_t size = std::min(kWidth, n - p), width = panels::PaddedWidth(size);
    panel_transposed.assign(static_cast<size_t>(p * width), 0);
    for (int64_t j = 0; j < size; ++j)
      for (int64_t k = 0; k < p; ++k)
        panel_transposed[static_cast<size_t>(k * width + j)] = a[(p + j) * n + k];
    // The last panel has no room for its padded width: it is computed in a temporary.
    double last[kWidth * kWidth];
    auto subtract = [&](int64_t begin, int64_t end) {
      if (p == 0) return;
      bool fits = size == width;
      for (int64_t i = begin; i < end && !fits; ++i)
        for (int64_t j = 0; j < size; ++j) last[(i - p) * width + j] = a[i * n + p + j];
      panels::SubtractProduct({.c = fits ? a + begin * n + p : last + (begin - p) * width,
                               .a = a + begin * n,
                               .b = panel_transposed.data(),
                               .c_row = fits ? n : width,
                               .a_row = n,
                               .rows = end - begin,
                               .depth = p,
                               .width = width});
      for (int64_t i = begin; i < end && !fits; ++i)
        for (int64_t j = 0; j < size; ++j) a[i * n + p + j] = last[(i - p) * width + j];
    };
    subtract(p, p + size);
    if (!panels::FactorBlock(a + p * n + p, n, size, width, columns)) return false;
    int64_t first = p + size, groups = (n - first + kRowGroup - 1) / kRowGroup;
    int64_t min_chunk = kTriangularMinChunk / (kRowGroup * (p + width) * width) + 1;
    ThreadPool::OfProcess().For(groups, min_chunk, [&](int64_t group, int64_t groups_end) {
      int64_t begin = first + group * kRowGroup;
      int64_t end = std::min(n, first + groups_end * kRowGroup);
      subtract(begin, end);
      panels::SolveRows(a + begin * n + p, n, end - begin, size, width, columns);
    });
  }
  return true;
}

// Scratch memory. Large matrices reuse pages through the host allocator.
template <typename T>
class Scratch {
 public:
  explicit Scratch(int64_t count) : bytes_(static_cast<size_t>(count) * sizeof(T)) {
    data_ = static_cast<T*>(HostAllocator::OfProcess().Allocate(bytes_));
    TOK_CHECK(data_ != nullptr, "there is memory for a matrix");
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() { HostAllocator::OfProcess().Free(data_, bytes_); }
  T* data() const { return data_; }

 private:
  size_t bytes_;
  T* data_;
};

// Converts contiguous elements to another type.
template <typename From, typename To>
void Convert(const From* from, To* to, int64_t count) {
  if constexpr (std::is_same_v<From, float> || std::is_same_v<To, float>) {
    panels::Convert(from, to, count);
  } else {
    for (int64_t i = 0; i < count; ++i) to[i] = To(from[i]);
  }
}

// The lower triangle of the transpose, by squares.
template <typename From, typename To>
void Transpose(const From* from, To* to, int64_t n) {
  for (int64_t row = 0; row < n; row += kPanel)
    for (int64_t column = 0; column <= row; column += kPanel)
      for (int64_t i = row; i < std::min(row + kPanel, n); ++i)
        for (int64_t j = column; j < std::min(column + kPanel, i + 1); ++j)
          to[i * n + j] = To(from[j * n + i]);
}

// Small matrices are distributed over threads; a large one uses the threads inside Factor.
template <typename Stored, typename T>
void Cholesky(const CholeskyCall& call, const Stored* from, Stored* to) {
  int64_t n = call.n,
          each = std::max<int64_t>(1, kTriangularMinChunk / std::max<int64_t>(1, n * n * n));
  ThreadPool::OfProcess().For(call.batch, each, [&](int64_t begin, int64_t end) {
    Scratch<T> scratch(n * n);
    T* a = scratch.data();
    for (int64_t m = begin; m < end; ++m) {
      const Stored* in = from + m * n * n;
      Stored* out = to + m * n * n;
      // The upper triangle is the lower one of the transposed matrix.
      if (call.lower) {
        for (int64_t i = 0; i < n; ++i) Convert(in + i * n, a + i * n, i + 1);
      } else {
        Transpose(in, a, n);
      }
      if (!Factor(a, n)) {
        std::fill(out, out + n * n, Stored(std::numeric_limits<float>::quiet_NaN()));
        continue;
      }
      for (int64_t i = 0; i < n; ++i) {
        int64_t first = call.lower ? i + 1 : 0, last = call.lower ? n : i;
        if (call.lower) Convert(a + i * n, out + i * n, i + 1);
        std::fill(out + i * n + first, out + i * n + last, Stored(0));
      }
      if (call.lower) continue;
      for (int64_t row = 0; row < n; row += kPanel)
        for (int64_t column = 0; column <= row; column += kPanel)
          for (int64_t j = column; j < std::min(column + kPanel, n); ++j)
            for (int64_t i = std::max(row, j); i < std::min(row + kPanel, n); ++i)
              out[j * n + i] = Stored(a[i * n + j]);
    }
  });
}

// Forward substitution with the matrix `a` for `width` columns of right-hand sides.
template <typename T>
void Solve(const T* a, int64_t n, bool unit, T* x, int64_t width) {
  for (int64_t i = 0; i < n; ++i) {
    T* row = x + i * width;
    Subtract(row, width, a + i * n, x, width, i);
    if (unit) continue;
    T pivot = a[i * n + i];
    for (int64_t j = 0; j < width; ++j) row[j] /= pivot;
  }
}

// Solve for doubles, with the products by tiles (panels.h).
void Solve(const double* a, int64_t n, bool unit, double* x, int64_t width) {
  for (int64_t i = 0; i < n; i += kPanel) {
    int64_t size = std::min(kPanel, n - i);
    panels::SubtractProduct({.c = x + i * width,
                             .a = a + i * n,
                             .b = x,
                             .c_row = width,
                             .a_row = n,
                             .rows = size,
                             .depth = i,
                             .width = width});
    panels::SolveBlock(a + i * n + i, n, size, unit, x + i * width, width);
  }
}

template <typename Stored, typename T>
class TriangularSolve {
 public:
  explicit TriangularSolve(const TriangularCall& call)
      : call_(call),
        n_(call.n),
        count_(call.left ? call.columns : call.rows),
        // x op(a) = b is op(a)^T x^T = b^T.
        transposed_(call.transposed == call.left),
        forward_(call.lower != transposed_) {}

  void Run(const Stored* from, const Stored* right, Stored* to) const {
    ThreadPool& pool = ThreadPool::OfProcess();
    int64_t matrix = n_ * n_, sides = call_.rows * call_.columns;
    int64_t min_chunk = kTriangularMinChunk / std::max<int64_t>(1, n_ * sides) + 1;
    if (n_ <= kFewRows) {
      return pool.For(call_.batch, min_chunk, [&](int64_t begin, int64_t end) {
        for (int64_t m = begin; m < end; ++m)
          SolveFewRows(from + m * matrix, right + m * sides, to + m * sides);
      });
    }
    // If there are few matrices, the remaining threads are distributed over the columns of each.
    pool.For(call_.batch, min_chunk, [&](int64_t begin, int64_t end) {
      Scratch<T> a(matrix);
      for (int64_t m = begin; m < end; ++m) {
        Fetch(from + m * matrix, a.data());
        SolveColumns(a.data(), right + m * sides, to + m * sides);
      }
    });
  }

 private:
  int64_t EliminationRow(int64_t i) const { return forward_ ? i : n_ - 1 - i; }

  // The lower triangle in the order of forward substitution, by squares: the source may be
  // transposed.
  void Fetch(const Stored* matrix, T* a) const {
    int64_t squares = (n_ + kPanel - 1) / kPanel;
    int64_t min_chunk = kMinChunkCopied / std::max<int64_t>(1, n_ * kPanel) + 1;
    ThreadPool::OfProcess().For(squares, min_chunk, [&](int64_t begin, int64_t end) {
      for (int64_t square = begin; square < end; ++square)
        for (int64_t other = 0; other <= square; ++other)
          FetchSquare(matrix, a, square * kPanel, other * kPanel);
    });
  }
  void FetchSquare(const Stored* matrix, T* a, int64_t row, int64_t column) const {
    for (int64_t i = row; i < std::min(row + kPanel, n_); ++i) {
      int64_t r = EliminationRow(i), count = std::min(kPanel, i + 1 - column);
      if (forward_ && !transposed_ && !call_.conjugated) {
        Convert(matrix + r * n_ + column, a + i * n_ + column, count);
        continue;
      }
      for (int64_t j = column; j <= std::min(i, column + kPanel - 1); ++j) {
        int64_t c = EliminationRow(j);
        T element(transposed_ ? matrix[c * n_ + r] : matrix[r * n_ + c]);
        a[i * n_ + j] = call_.conjugated ? Conj(element) : element;
      }
    }
  }

  void SolveFewRows(const Stored* matrix, const Stored* b, Stored* out) const {
    T a[kFewRows * kFewRows], x[kFewRows];
    FetchSquare(matrix, a, 0, 0);
    const int64_t row = call_.left ? call_.columns : 1, column = call_.left ? 1 : call_.columns;
    for (int64_t c = 0; c < count_; ++c) {
      for (int64_t i = 0; i < n_; ++i) {
        const int64_t offset = EliminationRow(i) * row + c * column;
        T sum(b[offset]);
        for (int64_t k = 0; k < i; ++k) sum -= Times(a[i * n_ + k], x[k]);
        x[i] = call_.unit ? sum : sum / a[i * n_ + i];
        out[offset] = Stored(x[i]);
      }
    }
  }

  // Right-hand sides that are rows in memory are read and written transposed, by squares; others
  // row by row, with only the first column passed to the body.
  template <typename Body>
  void ForSquares(int64_t columns, Body&& body) const {
    for (int64_t begin = 0; begin < n_; begin += kPanel)
      for (int64_t c = 0; c < (call_.left ? 1 : columns); ++c)
        for (int64_t i = begin; i < std::min(n_, begin + kPanel); ++i) body(i, c);
  }

  void SolveColumns(const T* a, const Stored* b, Stored* out) const {
    auto offset = [&](int64_t i, int64_t c) {
      return call_.left ? EliminationRow(i) * call_.columns + c
                        : c * call_.columns + EliminationRow(i);
    };
    int64_t blocks = (count_ + kPanel - 1) / kPanel;
    int64_t min_chunk =
        kTriangularMinChunk / std::max<int64_t>(1, n_ * n_ * std::min(count_, kPanel)) + 1;
    ThreadPool::OfProcess().For(blocks, min_chunk, [&](int64_t begin, int64_t end) {
      Scratch<T> scratch(n_ * kPanel);
      T* x = scratch.data();
      for (int64_t block = begin; block < end; ++block) {
        int64_t first = block * kPanel, columns = std::min(kPanel, count_ - first);
        int64_t width = std::is_same_v<T, double> ? panels::PaddedWidth(columns) : columns;
        if (columns < width) std::fill(x, x + n_ * width, T(0));
        ForSquares(columns, [&](int64_t i, int64_t c) {
          if (call_.left) return Convert(b + offset(i, first), x + i * width, columns);
          x[i * width + c] = T(b[offset(i, first + c)]);
        });
        Solve(a, n_, call_.unit, x, width);
        ForSquares(columns, [&](int64_t i, int64_t c) {
          if (call_.left) return Convert(x + i * width, out + offset(i, first), columns);
          out[offset(i, first + c)] = Stored(x[i * width + c]);
        });
      }
    });
  }

  const TriangularCall& call_;
  const int64_t n_, count_;
  const bool transposed_, forward_;
};

// Calls `body` with an array of the element's type and the accumulation type.
template <typename Body>
void Dispatch(MatrixElement element, Body&& body) {
  switch (element) {
    case MatrixElement::kF32:
      return body(float(), double());
    case MatrixElement::kF64:
      return body(double(), double());
    case MatrixElement::kC64:
      return body(std::complex<float>(), Complex());
    case MatrixElement::kC128:
      return body(Complex(), Complex());
  }
}

}  // namespace

void RunCholesky(const CholeskyCall& call, const void* a, void* factor) {
  Dispatch(call.element, [&]<typename Stored, typename T>(Stored, T) {
    Cholesky<Stored, T>(call, static_cast<const Stored*>(a), static_cast<Stored*>(factor));
  });
}

void RunTriangular(const TriangularCall& call, const void* a, const void* b, void* x) {
  Dispatch(call.element, [&]<typename Stored, typename T>(Stored, T) {
    TriangularSolve<Stored, T>(call).Run(static_cast<const Stored*>(a),
                                         static_cast<const Stored*>(b), static_cast<Stored*>(x));
  });
}

}  // namespace tokamak
