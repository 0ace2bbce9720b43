// cholesky, triangular-solve: textbook loops in double over each matrix of the batch.

#include <algorithm>
#include <cmath>
#include <limits>

#include "interp/complex_product.h"
#include "interp/evaluators.h"
#include "interp/results.h"
#include "interp/strided.h"

namespace tokamak {
namespace {

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

// a = L L^H, or a = U^H U: the same loops with rows and columns exchanged. The other triangle is
// not read and becomes 0. A matrix that is not positive definite gives NaN everywhere.
template <typename T>
void Cholesky(T* a, int64_t n, bool lower) {
  auto at = [&](int64_t i, int64_t j) -> T& { return lower ? a[i * n + j] : a[j * n + i]; };
  for (int64_t j = 0; j < n; ++j) {
    double pivot = RealOf(at(j, j));
    for (int64_t k = 0; k < j; ++k) pivot -= std::norm(at(j, k));
    if (!(pivot > 0)) {
      std::fill(a, a + n * n, T(std::numeric_limits<double>::quiet_NaN()));
      return;
    }
    at(j, j) = std::sqrt(pivot);
    for (int64_t i = j + 1; i < n; ++i) {
      T sum = at(i, j);
      for (int64_t k = 0; k < j; ++k) sum -= Times(at(i, k), Conj(at(j, k)));
      at(i, j) = sum / at(j, j);
    }
  }
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = i + 1; j < n; ++j) at(i, j) = T(0);
}

// Solves op(a) x = b in place for one column of b with stride `step`.
template <typename T>
void SolveColumn(const T* a, int64_t n, const TriangularSolveAttrs& attrs, T* b, int64_t step) {
  const bool transposed = attrs.transpose_a != Transpose::kNone;
  const bool adjoint = attrs.transpose_a == Transpose::kAdjoint;
  auto at = [&](int64_t i, int64_t j) {
    T element = transposed ? a[j * n + i] : a[i * n + j];
    return adjoint ? Conj(element) : element;
  };
  const bool forward = attrs.lower != transposed;
  for (int64_t r = 0; r < n; ++r) {
    int64_t i = forward ? r : n - 1 - r;
    T sum = b[i * step];
    // Subtracts in the order of solution, like a loop that updates all rows at once.
    for (int64_t k = 0; k < r; ++k) {
      int64_t j = forward ? k : n - 1 - k;
      sum -= Times(at(i, j), b[j * step]);
    }
    b[i * step] = attrs.unit_diagonal ? sum : sum / at(i, i);
  }
}

}  // namespace

Result<Value> EvalCholesky(const Instr& instr, std::span<const Value> operands, Context& context) {
  const bool lower = instr.attrs<CholeskyAttrs>().lower;
  const Dims& dims = operands[0].dims();
  ElementType type = instr.shape().type();
  return DispatchStorage(type, [&]<typename T>() -> Result<Value> {
    if constexpr (std::is_same_v<T, double> || std::is_same_v<T, Complex>) {
      std::vector<T> a = ElementsAs<T>(operands[0]);
      const int64_t n = dims.back(), size = n * n;
      for (size_t at = 0; at < a.size(); at += static_cast<size_t>(size))
        Cholesky(a.data() + at, n, lower);
      for (T& e : a) e = context.Round(type, e);
      return Value::Array(ResultShape(instr, dims), std::move(a));
    } else {
      return Unsupported(instr, "takes floating-point matrices only");
    }
  });
}

Result<Value> EvalTriangularSolve(const Instr& instr, std::span<const Value> operands,
                                  Context& context) {
  TriangularSolveAttrs attrs = instr.attrs<TriangularSolveAttrs>();
  const Dims& dims = operands[1].dims();
  ElementType type = instr.shape().type();
  return DispatchStorage(type, [&]<typename T>() -> Result<Value> {
    if constexpr (std::is_same_v<T, double> || std::is_same_v<T, Complex>) {
      std::vector<T> a = ElementsAs<T>(operands[0]), b = ElementsAs<T>(operands[1]);
      const int64_t n = operands[0].dims().back(), rows = dims[dims.size() - 2], cols = dims.back();
      // x op(a) = b is op(a)^T x^T = b^T: rows of b become columns, and the transposition is
      // inverted (an adjoint becomes a conjugate).
      if (!attrs.left_side) {
        if (attrs.transpose_a == Transpose::kAdjoint)
          for (T& e : a) e = Conj(e);
        attrs.transpose_a =
            attrs.transpose_a == Transpose::kNone ? Transpose::kTranspose : Transpose::kNone;
      }
      const int64_t columns = attrs.left_side ? cols : rows;
      const int64_t step = attrs.left_side ? cols : 1, stride = attrs.left_side ? 1 : cols;
      const int64_t matrices =
          rows * cols == 0 ? 0 : static_cast<int64_t>(b.size()) / (rows * cols);
      for (int64_t m = 0; m < matrices; ++m) {
        for (int64_t c = 0; c < columns; ++c)
          SolveColumn(a.data() + m * n * n, n, attrs, b.data() + m * rows * cols + c * stride,
                      step);
      }
      for (T& e : b) e = context.Round(type, e);
      return Value::Array(ResultShape(instr, dims), std::move(b));
    } else {
      return Unsupported(instr, "takes floating-point matrices only");
    }
  });
}

}  // namespace tokamak
