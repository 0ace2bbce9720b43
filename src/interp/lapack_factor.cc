// Factorizations and solves: potrf, getrf, geqrf, geqp3, orgqr, ormqr, trsm,
// gtsv, gehrd, sytrd. Operands and results are those of JAX's CPU calls.

#include "interp/lapack.h"
#include "interp/lapack_fortran.h"
#include "interp/matrix_batch.h"

namespace tokamak {

#if TOK_HAVE_LAPACK
namespace {

// Workspace that is enough for every routine here: blocks of 64 columns.
template <typename T>
std::vector<T> WorkFor(int a, int b) {
  return std::vector<T>(static_cast<size_t>(std::max(1, std::max(a, b))) * 64 + 64);
}
template <typename T>
int SizeOf(const std::vector<T>& work) {
  return static_cast<int>(work.size());
}

template <typename T>
Result<Value> Potrf(const LapackCall& call) {
  MatrixBatch<T> batch(call);
  const int n = batch.rows(), lda = AtLeastOne(n);
  const char uplo = call.Letter("uplo", 'L');
  return batch.ForEach([&](int64_t b) {
    std::vector<T> a = batch.Matrix(0, b);
    int info = 0;
    Pick<T>(dpotrf_, zpotrf_)(&uplo, &n, a.data(), &lda, &info, 1);
    batch.Put(b, ColumnMajor{a, n}, info);
  });
}

template <typename T>
int Factor(std::vector<T>& a, int m, int n, std::vector<int>& pivots) {
  const int lda = AtLeastOne(m);
  int info = 0;
  pivots.assign(static_cast<size_t>(std::min(m, n)), 0);
  Pick<T>(dgetrf_, zgetrf_)(&m, &n, a.data(), &lda, pivots.data(), &info);
  return info;
}

// lapack_*getrf_ffi: the factors, pivots from 1, info.
template <typename T>
Result<Value> Getrf(const LapackCall& call) {
  MatrixBatch<T> batch(call);
  return batch.ForEach([&](int64_t b) {
    std::vector<T> a = batch.Matrix(0, b);
    std::vector<int> pivots;
    int info = Factor(a, batch.rows(), batch.columns(), pivots);
    batch.Put(b, ColumnMajor{a, batch.rows()}, pivots, info);
  });
}

// LuDecomposition: the factors, pivots from 0, the permutation of the rows.
template <typename T>
Result<Value> Lu(const LapackCall& call) {
  MatrixBatch<T> batch(call);
  return batch.ForEach([&](int64_t b) {
    std::vector<T> a = batch.Matrix(0, b);
    std::vector<int> pivots, rows(static_cast<size_t>(batch.rows()));
    Factor(a, batch.rows(), batch.columns(), pivots);
    for (size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<int>(i);
    for (size_t i = 0; i < pivots.size(); ++i)
      std::swap(rows[i], rows[static_cast<size_t>(--pivots[i])]);
    batch.Put(b, ColumnMajor{a, batch.rows()}, pivots, rows);
  });
}

template <typename T>
Result<Value> Geqrf(const LapackCall& call) {
  MatrixBatch<T> batch(call);
  const int m = batch.rows(), n = batch.columns(), lda = AtLeastOne(m);
  std::vector<T> work = WorkFor<T>(m, n);
  const int size = SizeOf(work);
  return batch.ForEach([&](int64_t b) {
    std::vector<T> a = batch.Matrix(0, b), tau(static_cast<size_t>(std::min(m, n)));
    int info = 0;
    Pick<T>(dgeqrf_, zgeqrf_)(&m, &n, a.data(), &lda, tau.data(), work.data(), &size, &info);
    batch.Put(b, ColumnMajor{a, m}, tau, info);
  });
}

template <typename T>
Result<Value> Geqp3(const LapackCall& call) {
  MatrixBatch<T> batch(call);
  const int m = batch.rows(), n = batch.columns(), lda = AtLeastOne(m);
  std::vector<T> work = WorkFor<T>(m, 4 * n);
  const int size = SizeOf(work);
  return batch.ForEach([&](int64_t b) {
    std::vector<T> a = batch.Matrix(0, b), tau(static_cast<size_t>(std::min(m, n)));
    std::vector<int> pivots(static_cast<size_t>(n), 0);
    if (call.operands.size() > 1) {
      for (int i = 0; i < n; ++i)
        pivots[static_cast<size_t>(i)] = static_cast<int>(call.operands[1].IntAt(b * n + i));
    }
    int info = 0;
    if constexpr (kIsReal<T>) {
      dgeqp3_(&m, &n, a.data(), &lda, pivots.data(), tau.data(), work.data(), &size, &info);
    } else {
      std::vector<double> rwork(static_cast<size_t>(2 * n) + 1);
      zgeqp3_(&m, &n, a.data(), &lda, pivots.data(), tau.data(), work.data(), &size, rwork.data(),
              &info);
    }
    batch.Put(b, ColumnMajor{a, m}, pivots, tau, info);
  });
}

// The orthogonal matrix itself, of as many columns as the result has.
template <typename T>
Result<Value> Orgqr(const LapackCall& call) {
  MatrixBatch<T> batch(call);
  const int m = batch.rows(), n = batch.ResultColumns(0), lda = AtLeastOne(m);
  const int k = std::min(batch.columns(1), std::min(m, n));
  if (n > m) return Unsupported(call.instr, "a product of reflectors wider than high");
  std::vector<T> work = WorkFor<T>(m, n);
  const int size = SizeOf(work);
  return batch.ForEach([&](int64_t b) {
    std::vector<T> a = batch.Matrix(0, b), tau = batch.Vector(1, b);
    a.resize(static_cast<size_t>(m) * static_cast<size_t>(n));
    int info = 0;
    Pick<T>(dorgqr_, zungqr_)(&m, &n, &k, a.data(), &lda, tau.data(), work.data(), &size, &info);
    batch.Put(b, ColumnMajor{a, m}, info);
  });
}

template <typename T>
Result<Value> Ormqr(const LapackCall& call) {
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
  return batch.ForEach([&](int64_t b) {
    std::vector<T> a = batch.Matrix(0, b), tau = batch.Vector(1, b), c = batch.Matrix(2, b);
    int info = 0;
    Pick<T>(dormqr_, zunmqr_)(&side, &op, &m, &n, &k, a.data(), &lda, tau.data(), c.data(), &ldc,
                              work.data(), &size, &info, 1, 1);
    batch.Put(b, ColumnMajor{c, m}, info);
  });
}

template <typename T>
Result<Value> Trsm(const LapackCall& call) {
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
  return batch.ForEach([&](int64_t b) {
    std::vector<T> a = batch.Matrix(0, b), x = batch.Matrix(1, b);
    Pick<T>(dtrsm_, ztrsm_)(&side, &uplo, &trans, &diag, &m, &n, &one, a.data(), &lda, x.data(),
                            &ldb, 1, 1, 1, 1);
    batch.Put(b, ColumnMajor{x, m});
  });
}

template <typename T>
Result<Value> Gtsv(const LapackCall& call) {
  MatrixBatch<T> batch(call);
  const int n = batch.rows(3), columns = batch.columns(3), ldb = AtLeastOne(n);
  if (batch.columns(0) < n - 1 || batch.columns(1) < n || batch.columns(2) < n - 1)
    return RunError(ErrorCode::kLinearAlgebra, call.instr, "diagonals and right side do not fit");
  return batch.ForEach(
      [&](int64_t b) {
        std::vector<T> lower = batch.Vector(0, b), diagonal = batch.Vector(1, b);
        std::vector<T> upper = batch.Vector(2, b), x = batch.Matrix(3, b);
        int info = 0;
        // JAX keeps all three as long as the matrix: lower begins at 1.
        T* below = lower.data() + (static_cast<int>(lower.size()) == n && n > 0 ? 1 : 0);
        Pick<T>(dgtsv_, zgtsv_)(&n, &columns, below, diagonal.data(), upper.data(), x.data(), &ldb,
                                &info);
        batch.Put(b, lower, diagonal, upper, ColumnMajor{x, n}, info);
      },
      1);
}

template <typename T>
Result<Value> Gehrd(const LapackCall& call) {
  MatrixBatch<T> batch(call);
  const int n = batch.rows(), lda = AtLeastOne(n);
  const int low = static_cast<int>(call.Attr("low", 1));
  const int high = static_cast<int>(call.Attr("high", n));
  if (low < 1 || high > n || low > std::max(1, high))
    return RunError(ErrorCode::kLinearAlgebra, call.instr, "low and high are not inside 1 .. n");
  std::vector<T> work = WorkFor<T>(n, n);
  const int size = SizeOf(work);
  return batch.ForEach([&](int64_t b) {
    std::vector<T> a = batch.Matrix(0, b), tau(static_cast<size_t>(AtLeastOne(n)));
    int info = 0;
    Pick<T>(dgehrd_, zgehrd_)(&n, &low, &high, a.data(), &lda, tau.data(), work.data(), &size,
                              &info);
    batch.Put(b, ColumnMajor{a, n}, tau, info);
  });
}

template <typename T>
Result<Value> Sytrd(const LapackCall& call) {
  MatrixBatch<T> batch(call);
  const int n = batch.rows(), lda = AtLeastOne(n);
  const size_t length = static_cast<size_t>(AtLeastOne(n));
  const char uplo = call.Letter("uplo", 'L');
  std::vector<T> work = WorkFor<T>(n, n);
  const int size = SizeOf(work);
  return batch.ForEach([&](int64_t b) {
    std::vector<T> a = batch.Matrix(0, b), tau(length);
    std::vector<double> diagonal(length), beside(length);
    int info = 0;
    Pick<T>(dsytrd_, zhetrd_)(&uplo, &n, a.data(), &lda, diagonal.data(), beside.data(), tau.data(),
                              work.data(), &size, &info, 1);
    batch.Put(b, ColumnMajor{a, n}, diagonal, beside, tau, info);
  });
}

}  // namespace

LapackFn FindFactorization(std::string_view name) {
#define TOK_LAPACK(text, Fn, least)                                                       \
  if (name == text) {                                                                     \
    return [](const LapackCall& call) -> Result<Value> {                                  \
      if (call.operands.size() < least)                                                   \
        return RunError(ErrorCode::kLinearAlgebra, call.instr, text " lacks an operand"); \
      return call.is_complex ? Fn<Complex>(call) : Fn<double>(call);                      \
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
  TOK_LAPACK("gehrd", Gehrd, 1)
  TOK_LAPACK("sytrd", Sytrd, 1)
#undef TOK_LAPACK
  return nullptr;
}

#else

LapackFn FindFactorization(std::string_view) {
  return nullptr;
}

#endif  // TOK_HAVE_LAPACK

}  // namespace tokamak
