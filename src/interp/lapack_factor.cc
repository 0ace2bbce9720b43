// Factorizations and solves: potrf, getrf, geqrf, geqp3, orgqr, ormqr, trsm,
// gtsv, gehrd, sytrd, and a tridiagonal solver of our own. Operands and results are those of JAX's
// CPU calls.

#include <cmath>
#include <limits>

#include "interp/lapack.h"
#include "interp/lapack_routines.h"
#include "interp/matrix_batch.h"

namespace tokamak {

namespace {

// A workspace size sufficient for every routine here: blocks of 64 columns.
template <typename T>
std::vector<T> WorkFor(int a, int b) {
  return std::vector<T>(static_cast<size_t>(std::max(1, std::max(a, b))) * 64 + 64);
}
template <typename T>
int SizeOf(const std::vector<T>& work) {
  return static_cast<int>(work.size());
}

template <typename T>
Status Potrf(const LapackCall& call) {
  MatrixBatch<T> batch(call);
  const int n = batch.rows(), lda = AtLeastOne(n);
  const char uplo = call.Letter("uplo", 'L');
  std::vector<T> a;
  return batch.ForEach([&](int64_t b) {
    batch.Matrix(0, b, a);
    int info = 0;
    Lapack<T>().potrf(&uplo, &n, a.data(), &lda, &info, 1);
    batch.Put(b, ColumnMajor{a, n}, info);
  });
}

template <typename T>
int Factor(std::vector<T>& a, int m, int n, std::vector<int>& pivots) {
  const int lda = AtLeastOne(m);
  int info = 0;
  pivots.assign(static_cast<size_t>(std::min(m, n)), 0);
  Lapack<T>().getrf(&m, &n, a.data(), &lda, pivots.data(), &info);
  return info;
}

// lapack_*getrf_ffi: the factors, pivots from 1, info.
template <typename T>
Status Getrf(const LapackCall& call) {
  MatrixBatch<T> batch(call);
  std::vector<T> a;
  std::vector<int> pivots;
  return batch.ForEach([&](int64_t b) {
    batch.Matrix(0, b, a);
    int info = Factor(a, batch.rows(), batch.columns(), pivots);
    batch.Put(b, ColumnMajor{a, batch.rows()}, pivots, info);
  });
}

// LuDecomposition: the factors, pivots from 0, the permutation of the rows.
template <typename T>
Status Lu(const LapackCall& call) {
  MatrixBatch<T> batch(call);
  std::vector<T> a;
  std::vector<int> pivots, rows(static_cast<size_t>(batch.rows()));
  return batch.ForEach([&](int64_t b) {
    batch.Matrix(0, b, a);
    Factor(a, batch.rows(), batch.columns(), pivots);
    for (size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<int>(i);
    for (size_t i = 0; i < pivots.size(); ++i)
      std::swap(rows[i], rows[static_cast<size_t>(--pivots[i])]);
    batch.Put(b, ColumnMajor{a, batch.rows()}, pivots, rows);
  });
}

template <typename T>
Status Geqrf(const LapackCall& call) {
  MatrixBatch<T> batch(call);
  const int m = batch.rows(), n = batch.columns(), lda = AtLeastOne(m);
  std::vector<T> work = WorkFor<T>(m, n);
  const int size = SizeOf(work);
  std::vector<T> a, tau(static_cast<size_t>(std::min(m, n)));
  return batch.ForEach([&](int64_t b) {
    batch.Matrix(0, b, a);
    int info = 0;
    Lapack<T>().geqrf(&m, &n, a.data(), &lda, tau.data(), work.data(), &size, &info);
    batch.Put(b, ColumnMajor{a, m}, tau, info);
  });
}

template <typename T>
Status Geqp3(const LapackCall& call) {
  MatrixBatch<T> batch(call);
  const int m = batch.rows(), n = batch.columns(), lda = AtLeastOne(m);
  std::vector<T> work = WorkFor<T>(m, 4 * n);
  const int size = SizeOf(work);
  std::vector<T> a, tau(static_cast<size_t>(std::min(m, n)));
  return batch.ForEach([&](int64_t b) {
    batch.Matrix(0, b, a);
    std::vector<int> pivots(static_cast<size_t>(n), 0);
    if (call.operands.size() > 1) batch.Ints(1, b, pivots);
    int info = 0;
    if constexpr (kIsReal<T>) {
      Lapack<T>().geqp3(&m, &n, a.data(), &lda, pivots.data(), tau.data(), work.data(), &size,
                        &info);
    } else {
      std::vector<RealOf<T>> rwork(static_cast<size_t>(2 * n) + 1);
      Lapack<T>().geqp3(&m, &n, a.data(), &lda, pivots.data(), tau.data(), work.data(), &size,
                        rwork.data(), &info);
    }
    batch.Put(b, ColumnMajor{a, m}, pivots, tau, info);
  });
}

// The orthogonal matrix itself, with as many columns as the result has.
template <typename T>
Status Orgqr(const LapackCall& call) {
  MatrixBatch<T> batch(call);
  const int m = batch.rows(), n = batch.ResultColumns(0), lda = AtLeastOne(m);
  const int k = std::min(batch.columns(1), std::min(m, n));
  if (n > m) return Unsupported(call.instr, "a product of reflectors wider than high");
  std::vector<T> work = WorkFor<T>(m, n);
  const int size = SizeOf(work);
  std::vector<T> a, tau;
  return batch.ForEach([&](int64_t b) {
    batch.Matrix(0, b, a);
    batch.Vector(1, b, tau);
    a.resize(static_cast<size_t>(m) * static_cast<size_t>(n));
    int info = 0;
    Lapack<T>().orgqr(&m, &n, &k, a.data(), &lda, tau.data(), work.data(), &size, &info);
    batch.Put(b, ColumnMajor{a, m}, info);
  });
}

template <typename T>
Status Ormqr(const LapackCall& call) {
  MatrixBatch<T> batch(call);
  const int m = batch.rows(2), n = batch.columns(2), k = batch.columns(1);
  const bool left = call.Attr("side", call.Attr("left", 1) != 0 ? 'L' : 'R') == 'L';
  int64_t trans = call.Attr("trans", call.Attr("transpose", 0));
  const char side = left ? 'L' : 'R';
  const char op = trans == 0 || trans == 'N' ? 'N' : kIsReal<T> ? 'T' : 'C';
  const int lda = AtLeastOne(batch.rows(0)), ldc = AtLeastOne(m);
  if (batch.rows(0) != (left ? m : n) || k > std::min(batch.rows(0), batch.columns(0)))
    return RunError(ErrorCode::kLinearAlgebra, call.instr, "reflectors and matrix do not fit");
  std::vector<T> work = WorkFor<T>(m, n);
  const int size = SizeOf(work);
  std::vector<T> a, tau, c;
  return batch.ForEach([&](int64_t b) {
    batch.Matrix(0, b, a);
    batch.Vector(1, b, tau);
    batch.Matrix(2, b, c);
    int info = 0;
    Lapack<T>().ormqr(&side, &op, &m, &n, &k, a.data(), &lda, tau.data(), c.data(), &ldc,
                      work.data(), &size, &info, 1, 1);
    batch.Put(b, ColumnMajor{c, m}, info);
  });
}

template <typename T>
Status Trsm(const LapackCall& call) {
  MatrixBatch<T> batch(call);
  const int m = batch.rows(1), n = batch.columns(1);
  const char side = call.Letter("side", 'L');
  const char uplo = call.Letter("uplo", 'L');
  const char trans = call.Letter("trans_x", 'N');
  const char diag = call.Letter("diag", 'N');
  if (batch.rows(0) != batch.columns(0) || batch.rows(0) != (side == 'L' ? m : n))
    return RunError(ErrorCode::kLinearAlgebra, call.instr, "matrix and right side do not fit");
  const int lda = AtLeastOne(batch.rows(0)), ldb = AtLeastOne(m);
  const T one = 1;
  std::vector<T> a, x;
  return batch.ForEach([&](int64_t b) {
    batch.Matrix(0, b, a);
    batch.Matrix(1, b, x);
    Lapack<T>().trsm(&side, &uplo, &trans, &diag, &m, &n, &one, a.data(), &lda, x.data(), &ldb, 1,
                     1, 1, 1);
    batch.Put(b, ColumnMajor{x, m});
  });
}

template <typename T>
Status Gtsv(const LapackCall& call) {
  MatrixBatch<T> batch(call);
  const int n = batch.rows(3), columns = batch.columns(3), ldb = AtLeastOne(n);
  if (batch.columns(0) < n - 1 || batch.columns(1) < n || batch.columns(2) < n - 1)
    return RunError(ErrorCode::kLinearAlgebra, call.instr, "diagonals and right side do not fit");
  std::vector<T> lower, diagonal, upper, x;
  return batch.ForEach(
      [&](int64_t b) {
        batch.Vector(0, b, lower);
        batch.Vector(1, b, diagonal);
        batch.Vector(2, b, upper);
        batch.Matrix(3, b, x);
        int info = 0;
        // In JAX all three diagonals have the matrix size: lower begins at 1.
        T* below = lower.data() + (static_cast<int>(lower.size()) == n && n > 0 ? 1 : 0);
        Lapack<T>().gtsv(&n, &columns, below, diagonal.data(), upper.data(), x.data(), &ldb, &info);
        batch.Put(b, lower, diagonal, upper, ColumnMajor{x, n}, info);
      },
      1);
}

template <typename T>
Status Gehrd(const LapackCall& call) {
  MatrixBatch<T> batch(call);
  const int n = batch.rows(), lda = AtLeastOne(n);
  const int low = static_cast<int>(call.Attr("low", 1));
  const int high = static_cast<int>(call.Attr("high", n));
  if (low < 1 || high > n || low > std::max(1, high))
    return RunError(ErrorCode::kLinearAlgebra, call.instr, "low and high are not inside 1 .. n");
  std::vector<T> work = WorkFor<T>(n, n);
  const int size = SizeOf(work);
  std::vector<T> a, tau(static_cast<size_t>(AtLeastOne(n)));
  return batch.ForEach([&](int64_t b) {
    batch.Matrix(0, b, a);
    int info = 0;
    Lapack<T>().gehrd(&n, &low, &high, a.data(), &lda, tau.data(), work.data(), &size, &info);
    batch.Put(b, ColumnMajor{a, n}, tau, info);
  });
}

template <typename T>
Status Sytrd(const LapackCall& call) {
  MatrixBatch<T> batch(call);
  const int n = batch.rows(), lda = AtLeastOne(n);
  const size_t length = static_cast<size_t>(AtLeastOne(n));
  const char uplo = call.Letter("uplo", 'L');
  std::vector<T> work = WorkFor<T>(n, n);
  const int size = SizeOf(work);
  std::vector<T> a, tau(length);
  std::vector<RealOf<T>> diagonal(length), beside(length);
  return batch.ForEach([&](int64_t b) {
    batch.Matrix(0, b, a);
    int info = 0;
    Lapack<T>().sytrd(&uplo, &n, a.data(), &lda, diagonal.data(), beside.data(), tau.data(),
                      work.data(), &size, &info, 1);
    batch.Put(b, ColumnMajor{a, n}, diagonal, beside, tau, info);
  });
}

// Prevents overflow in the division by a pivot, as LAPACK's lagts does: increases the pivot, or
// scales both.
template <typename T>
void PerturbPivot(T& pivot, RealOf<T> step, std::span<T> row) {
  using R = RealOf<T>;
  const R smallest = std::numeric_limits<R>::min(), largest = 1 / smallest;
  R largest_in_row = 0;
  for (const T& value : row) largest_in_row = std::max(largest_in_row, std::abs(value));
  step = std::copysign(std::max(step, smallest), std::real(pivot));
  for (R size = std::abs(pivot); size < 1; size = std::abs(pivot)) {
    const bool tiny = size < smallest;
    if (size == 0 || largest_in_row > (tiny ? size / smallest : size * largest)) {
      pivot += step;
      step *= 2;
      continue;
    }
    if (tiny) {
      pivot *= largest;
      for (T& value : row) value *= largest;
    }
    return;
  }
}

// A row of a tridiagonal matrix during elimination, which adds a third element, and its right-hand
// side.
template <typename T>
struct BandRow {
  T at[3] = {};
  RealOf<T> scale = 0;
  std::vector<T> right;
};

// Eliminates the element of `next` below the pivot of `row`; swaps the rows if `next` has the
// relatively larger element.
template <typename T>
void Eliminate(BandRow<T>& row, BandRow<T>& next, T below) {
  if (below == T(0)) return;
  const bool swap =
      row.at[0] == T(0) || std::abs(below) * row.scale > std::abs(row.at[0]) * next.scale;
  T multiple;
  if (swap) {
    multiple = row.at[0] / below;
    BandRow<T> upper{{below, next.at[0], next.at[1]}, next.scale, std::move(next.right)};
    next = BandRow<T>{{row.at[1], row.at[2], T(0)}, row.scale, std::move(row.right)};
    row = std::move(upper);
  } else {
    multiple = below / row.at[0];
  }
  for (size_t i = 0; i < 2; ++i) next.at[i] -= multiple * row.at[i + 1];
  for (size_t j = 0; j < next.right.size(); ++j) next.right[j] -= multiple * row.right[j];
}

// One system of tridiagonal_solve_perturbed. Pivots of a singular matrix are perturbed by a
// rounding error of its largest element, so that the result is finite.
template <typename T>
std::vector<BandRow<T>> SolvePerturbed(std::vector<BandRow<T>> rows, const std::vector<T>& lower) {
  using R = RealOf<T>;
  const size_t n = rows.size();
  for (size_t k = 0; k + 1 < n; ++k) Eliminate(rows[k], rows[k + 1], lower[k + 1]);
  R largest = 0;
  for (const BandRow<T>& row : rows)
    for (const T& value : row.at) largest = std::max(largest, std::abs(value));
  for (size_t k = n; k-- > 0;) {
    for (size_t i = 1; i < 3 && k + i < n; ++i)
      for (size_t j = 0; j < rows[k].right.size(); ++j)
        rows[k].right[j] -= rows[k].at[i] * rows[k + i].right[j];
    PerturbPivot<T>(rows[k].at[0], std::numeric_limits<R>::epsilon() * largest, rows[k].right);
    for (T& value : rows[k].right) value /= rows[k].at[0];
  }
  return rows;
}

template <typename T>
Status Perturbed(const LapackCall& call) {
  MatrixBatch<T> batch(call);
  const int n = batch.rows(3), columns = batch.columns(3);
  if (batch.columns(0) != n || batch.columns(1) != n || batch.columns(2) != n)
    return RunError(ErrorCode::kLinearAlgebra, call.instr, "diagonals and right side do not fit");
  std::vector<T> lower, diagonal, upper, x;
  return batch.ForEach(
      [&](int64_t b) {
        batch.Vector(0, b, lower);
        batch.Vector(1, b, diagonal);
        batch.Vector(2, b, upper);
        batch.Matrix(3, b, x);
        std::vector<BandRow<T>> rows(static_cast<size_t>(n));
        for (int k = 0; k < n; ++k) {
          const size_t at = static_cast<size_t>(k);
          BandRow<T>& row = rows[at];
          row.at[0] = diagonal[at];
          if (k + 1 < n) row.at[1] = upper[at];
          row.scale = std::abs(row.at[0]) + std::abs(row.at[1]);
          if (k > 0) row.scale += std::abs(lower[at]);
          for (int j = 0; j < columns; ++j) row.right.push_back(x[batch.Index(k, j, n)]);
        }
        rows = SolvePerturbed(std::move(rows), lower);
        for (int k = 0; k < n; ++k)
          for (int j = 0; j < columns; ++j)
            x[batch.Index(k, j, n)] = rows[static_cast<size_t>(k)].right[static_cast<size_t>(j)];
        batch.Put(b, ColumnMajor{x, n});
      },
      1);
}

}  // namespace

LapackFn FindFactorization(std::string_view name) {
#define TOK_LAPACK(text, Fn, least)                                                       \
  if (name == text) {                                                                     \
    return [](const LapackCall& call) -> Status {                                         \
      if (call.operands.size() < least)                                                   \
        return RunError(ErrorCode::kLinearAlgebra, call.instr, text " lacks an operand"); \
      return InPrecisionOf(call, [&]<typename T>() { return Fn<T>(call); });              \
    };                                                                                    \
  }
  TOK_LAPACK("potrf", Potrf, 1)
  TOK_LAPACK("getrf", Getrf, 1)
  TOK_LAPACK("lu", Lu, 1)
  TOK_LAPACK("geqrf", Geqrf, 1)
  TOK_LAPACK("geqp3", Geqp3, 1)
  TOK_LAPACK("orgqr", Orgqr, 2)
  TOK_LAPACK("ormqr", Ormqr, 3)
  TOK_LAPACK("trsm", Trsm, 2)
  TOK_LAPACK("gtsv", Gtsv, 4)
  TOK_LAPACK("tridiagonal_solve_perturbed", Perturbed, 4)
  TOK_LAPACK("gehrd", Gehrd, 1)
  TOK_LAPACK("sytrd", Sytrd, 1)
#undef TOK_LAPACK
  return nullptr;
}

}  // namespace tokamak
