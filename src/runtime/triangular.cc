#include "runtime/triangular.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <vector>

#include "runtime/clones.h"
#include "runtime/thread_pool.h"

namespace tokamak {
namespace {

using Complex = std::complex<double>;

// Columns of a panel, which stays in the nearest cache, and rows worth another thread.
constexpr int64_t kPanel = 32, kGrainProducts = 1 << 16;

double Conj(double x) {
  return x;
}
Complex Conj(Complex x) {
  return std::conj(x);
}
double RealOf(double x) {
  return x;
}
double RealOf(Complex x) {
  return x.real();
}
// Spelled out: operator* of std::complex looks for NaN in every product.
[[maybe_unused]] TOK_INLINE double Times(double x, double y) {
  return x * y;
}
TOK_INLINE Complex Times(Complex x, Complex y) {
  return {x.real() * y.real() - x.imag() * y.imag(), x.real() * y.imag() + x.imag() * y.real()};
}

// to[j] -= factors[k] * rows[k * apart + j] for k = 0, 1 ...: in this order for each j.
template <typename T>
TOK_INLINE void SubtractRows(T* __restrict to, int64_t width, const T* factors,
                             const T* __restrict rows, int64_t apart, int64_t count) {
  if (width == kPanel) {  // in registers
    T sums[kPanel];
    for (int64_t j = 0; j < kPanel; ++j) sums[j] = to[j];
    for (int64_t k = 0; k < count; ++k) {
      T factor = factors[k];
      for (int64_t j = 0; j < kPanel; ++j) sums[j] -= Times(factor, rows[k * apart + j]);
    }
    for (int64_t j = 0; j < kPanel; ++j) to[j] = sums[j];
    return;
  }
  for (int64_t k = 0; k < count; ++k) {
    T factor = factors[k];
    for (int64_t j = 0; j < width; ++j) to[j] -= Times(factor, rows[k * apart + j]);
  }
}

TOK_CLONES void Subtract(double* to, int64_t width, const double* factors, const double* rows,
                         int64_t apart, int64_t count) {
  SubtractRows(to, width, factors, rows, apart, count);
}
TOK_CLONES void Subtract(Complex* to, int64_t width, const Complex* factors, const Complex* rows,
                         int64_t apart, int64_t count) {
  SubtractRows(to, width, factors, rows, apart, count);
}

// The lower factor in place, panel by panel: what all columns before a panel take from it first,
// then its own. false: not positive definite.
template <typename T>
bool Factor(T* a, int64_t n) {
  std::vector<T> across;  // rows of the panel so far, as columns, conjugated
  for (int64_t p = 0; p < n; p += kPanel) {
    int64_t width = std::min(kPanel, n - p);
    across.resize(static_cast<size_t>(p * width));
    for (int64_t k = 0; k < p; ++k)
      for (int64_t j = 0; j < width; ++j)
        across[static_cast<size_t>(k * width + j)] = Conj(a[(p + j) * n + k]);
    int64_t grain = kGrainProducts / std::max<int64_t>(1, p * width) + 1;
    ThreadPool::OfProcess().For(n - p, grain, [&](int64_t begin, int64_t end) {
      for (int64_t i = p + begin; i < p + end; ++i)
        Subtract(a + i * n + p, width, a + i * n, across.data(), width, p);
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

template <typename Stored, typename T>
void Cholesky(const CholeskyCall& call, const Stored* from, Stored* to) {
  int64_t n = call.n, each = std::max<int64_t>(1, kGrainProducts / std::max<int64_t>(1, n * n * n));
  ThreadPool::OfProcess().For(call.batch, each, [&](int64_t begin, int64_t end) {
    std::vector<T> a(static_cast<size_t>(n * n));
    for (int64_t m = begin; m < end; ++m) {
      const Stored* in = from + m * n * n;
      Stored* out = to + m * n * n;
      // The upper one is the lower one of the transposed matrix.
      auto place = [&](int64_t i, int64_t j) { return call.lower ? i * n + j : j * n + i; };
      for (int64_t i = 0; i < n; ++i)
        for (int64_t j = 0; j <= i; ++j) a[static_cast<size_t>(i * n + j)] = T(in[place(i, j)]);
      bool good = Factor(a.data(), n);
      for (int64_t i = 0; i < n; ++i)
        for (int64_t j = 0; j < n; ++j)
          out[place(i, j)] = !good    ? Stored(std::numeric_limits<float>::quiet_NaN())
                             : j <= i ? Stored(a[static_cast<size_t>(i * n + j)])
                                      : Stored(0);
    }
  });
}

// One matrix: a forward substitution with the matrix `a`, rows before it solved first, for columns
// begin .. end - 1 of the right sides.
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

template <typename Stored, typename T>
void Triangular(const TriangularCall& call, const Stored* from, const Stored* right, Stored* to) {
  const int64_t n = call.n, count = call.left ? call.columns : call.rows;
  // x op(a) = b is op(a)^T x^T = b^T.
  const bool transposed = call.transposed == call.left;
  const bool forward = call.lower != transposed;
  auto turn = [&](int64_t i) { return forward ? i : n - 1 - i; };
  std::vector<T> a(static_cast<size_t>(n * n));
  for (int64_t m = 0; m < call.batch; ++m) {
    const Stored* matrix = from + m * n * n;
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t j = 0; j <= i; ++j) {
        int64_t r = turn(i), c = turn(j);
        T element(transposed ? matrix[c * n + r] : matrix[r * n + c]);
        a[static_cast<size_t>(i * n + j)] = call.conjugated ? Conj(element) : element;
      }
    }
    const Stored* b = right + m * call.rows * call.columns;
    Stored* out = to + m * call.rows * call.columns;
    auto place = [&](int64_t i, int64_t c) {
      return call.left ? turn(i) * call.columns + c : c * call.columns + turn(i);
    };
    int64_t blocks = (count + kPanel - 1) / kPanel;
    int64_t grain = kGrainProducts / std::max<int64_t>(1, n * n * std::min(count, kPanel)) + 1;
    ThreadPool::OfProcess().For(blocks, grain, [&](int64_t begin, int64_t end) {
      std::vector<T> x(static_cast<size_t>(n * kPanel));
      for (int64_t block = begin; block < end; ++block) {
        int64_t first = block * kPanel, width = std::min(kPanel, count - first);
        for (int64_t i = 0; i < n; ++i)
          for (int64_t c = 0; c < width; ++c)
            x[static_cast<size_t>(i * width + c)] = T(b[place(i, first + c)]);
        Solve(a.data(), n, call.unit, x.data(), width);
        for (int64_t i = 0; i < n; ++i)
          for (int64_t c = 0; c < width; ++c)
            out[place(i, first + c)] = Stored(x[static_cast<size_t>(i * width + c)]);
      }
    });
  }
}

// Calls `body` with an array of the element's type and the type that sums are made in.
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
    Triangular<Stored, T>(call, static_cast<const Stored*>(a), static_cast<const Stored*>(b),
                          static_cast<Stored*>(x));
  });
}

}  // namespace tokamak
