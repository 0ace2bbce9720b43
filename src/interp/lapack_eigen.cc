// Decompositions: syevd, geev, gesdd and gesvd, gees. Operands and results are
// those of JAX's CPU calls.

#include <algorithm>
#include <cmath>

#include "interp/lapack.h"
#include "interp/lapack_fortran.h"
#include "interp/matrix_batch.h"

namespace tokamak {

#if TOK_HAVE_LAPACK
namespace {

size_t Square(int n) {
  return static_cast<size_t>(AtLeastOne(n)) * static_cast<size_t>(AtLeastOne(n));
}
// What a routine answered when it was asked how much workspace it likes.
int Asked(double answer) {
  return std::max(1, static_cast<int>(answer));
}
int Asked(Complex answer) {
  return Asked(answer.real());
}

// geev calls gebal, which reports a NaN or infinity as a wrong argument, and that ends the process.
template <typename T>
bool AllFinite(const std::vector<T>& a) {
  return std::all_of(a.begin(), a.end(), [](const T& x) { return std::isfinite(std::abs(x)); });
}
constexpr int kNotFinite = -4;  // as JAX's own call gives it

// Eigenvectors take the place of `a`.
template <typename T>
int Eigh(std::vector<T>& a, int n, char mode, char uplo, std::vector<double>& w) {
  const int lda = AtLeastOne(n);
  int info = 0, ask = -1, iask = 0;
  T want{};
  w.assign(static_cast<size_t>(AtLeastOne(n)), 0);
  if constexpr (kIsReal<T>) {
    dsyevd_(&mode, &uplo, &n, a.data(), &lda, w.data(), &want, &ask, &iask, &ask, &info, 1, 1);
    const int size = Asked(want), isize = std::max(1, iask);
    std::vector<T> work(static_cast<size_t>(size));
    std::vector<int> iwork(static_cast<size_t>(isize));
    dsyevd_(&mode, &uplo, &n, a.data(), &lda, w.data(), work.data(), &size, iwork.data(), &isize,
            &info, 1, 1);
  } else {
    double rask = 0;
    zheevd_(&mode, &uplo, &n, a.data(), &lda, w.data(), &want, &ask, &rask, &ask, &iask, &ask,
            &info, 1, 1);
    const int size = Asked(want), rsize = Asked(rask), isize = std::max(1, iask);
    std::vector<T> work(static_cast<size_t>(size));
    std::vector<double> rwork(static_cast<size_t>(rsize));
    std::vector<int> iwork(static_cast<size_t>(isize));
    zheevd_(&mode, &uplo, &n, a.data(), &lda, w.data(), work.data(), &size, rwork.data(), &rsize,
            iwork.data(), &isize, &info, 1, 1);
  }
  return info;
}

// lapack_*syevd_ffi: vectors, values, info. XLA's Eigh has the same without info.
template <typename T>
Result<Value> Syevd(const LapackCall& call) {
  MatrixBatch<T> batch(call);
  const char mode = call.Attr("mode", 'V') == 'N' ? 'N' : 'V';
  const char uplo = call.Letter("uplo", 'L');
  return batch.ForEach([&](int64_t b) {
    std::vector<T> a = batch.Matrix(0, b);
    std::vector<double> w;
    int info = Eigh(a, batch.rows(), mode, uplo, w);
    batch.Put(b, ColumnMajor{a, batch.rows()}, w, info);
  });
}

// LAPACK keeps a pair of conjugate eigenvectors as real and imaginary part.
std::vector<Complex> Unpacked(const std::vector<double>& v, const std::vector<double>& imag,
                              int n) {
  std::vector<Complex> unpacked(v.size());
  for (int j = 0; j < n; ++j) {
    bool pair = imag[static_cast<size_t>(j)] != 0 && j + 1 < n;
    for (int i = 0; i < n; ++i) {
      size_t at = MatrixBatch<double>::Index(i, j, n);
      if (!pair) {
        unpacked[at] = v[at];
        continue;
      }
      size_t next = MatrixBatch<double>::Index(i, j + 1, n);
      unpacked[at] = Complex(v[at], v[next]);
      unpacked[next] = Complex(v[at], -v[next]);
    }
    if (pair) ++j;
  }
  return unpacked;
}

// Real: real parts, imaginary parts, left and right vectors (complex), info.
Result<Value> RealGeev(const LapackCall& call) {
  MatrixBatch<double> batch(call);
  const int n = batch.rows(), ld = AtLeastOne(n);
  const char left = call.Letter("compute_left", 'N');
  const char right = call.Letter("compute_right", 'V');
  return batch.ForEach([&](int64_t b) {
    std::vector<double> a = batch.Matrix(0, b), vl(Square(n)), vr(Square(n));
    std::vector<double> real(static_cast<size_t>(ld)), imag(static_cast<size_t>(ld));
    const int size = 16 * ld + 64;
    std::vector<double> work(static_cast<size_t>(size));
    int info = AllFinite(a) ? 0 : kNotFinite;
    if (info == 0)
      dgeev_(&left, &right, &n, a.data(), &ld, real.data(), imag.data(), vl.data(), &ld, vr.data(),
             &ld, work.data(), &size, &info, 1, 1);
    batch.Put(b, real, imag, ColumnMajor{Unpacked(vl, imag, n), n},
              ColumnMajor{Unpacked(vr, imag, n), n}, info);
  });
}

// Complex: values, left and right vectors, info.
Result<Value> ComplexGeev(const LapackCall& call) {
  MatrixBatch<Complex> batch(call);
  const int n = batch.rows(), ld = AtLeastOne(n);
  const char left = call.Letter("compute_left", 'N');
  const char right = call.Letter("compute_right", 'V');
  return batch.ForEach([&](int64_t b) {
    std::vector<Complex> a = batch.Matrix(0, b), vl(Square(n)), vr(Square(n));
    std::vector<Complex> w(static_cast<size_t>(ld));
    std::vector<double> rwork(static_cast<size_t>(2 * ld));
    const int size = 16 * ld + 64;
    std::vector<Complex> work(static_cast<size_t>(size));
    int info = AllFinite(a) ? 0 : kNotFinite;
    if (info == 0)
      zgeev_(&left, &right, &n, a.data(), &ld, w.data(), vl.data(), &ld, vr.data(), &ld,
             work.data(), &size, rwork.data(), &info, 1, 1);
    batch.Put(b, w, ColumnMajor{vl, n}, ColumnMajor{vr, n}, info);
  });
}

// Singular values: what is left of the operand, values, left vectors, right
// vectors (adjoint), info. Mode A: all vectors, S: as many as values, N: none.
template <typename T>
Result<Value> Gesdd(const LapackCall& call) {
  MatrixBatch<T> batch(call);
  const int m = batch.rows(), n = batch.columns(), k = std::min(m, n);
  const int64_t asked = call.Attr("mode", 'A');
  const char mode = asked == 'A' || asked == 'S' ? static_cast<char>(asked) : 'N';
  const int columns = mode == 'A' ? m : k, rows = mode == 'A' ? n : k;
  const int lda = AtLeastOne(m), ldvt = AtLeastOne(rows);
  const size_t least = static_cast<size_t>(AtLeastOne(k));
  return batch.ForEach([&](int64_t b) {
    std::vector<T> a = batch.Matrix(0, b);
    std::vector<T> u(static_cast<size_t>(lda) * static_cast<size_t>(AtLeastOne(columns)));
    std::vector<T> vt(static_cast<size_t>(ldvt) * static_cast<size_t>(AtLeastOne(n)));
    std::vector<double> s(least);
    std::vector<int> iwork(8 * least);
    int info = 0, ask = -1;
    T want{};
    if (k > 0) {
      if constexpr (kIsReal<T>) {
        dgesdd_(&mode, &m, &n, a.data(), &lda, s.data(), u.data(), &lda, vt.data(), &ldvt, &want,
                &ask, iwork.data(), &info, 1);
        const int size = Asked(want);
        std::vector<T> work(static_cast<size_t>(size));
        dgesdd_(&mode, &m, &n, a.data(), &lda, s.data(), u.data(), &lda, vt.data(), &ldvt,
                work.data(), &size, iwork.data(), &info, 1);
      } else {
        const size_t most = static_cast<size_t>(std::max(m, n));
        std::vector<double> rwork(least * std::max(5 * least + 7, 2 * most + 2 * least + 1) + 64);
        zgesdd_(&mode, &m, &n, a.data(), &lda, s.data(), u.data(), &lda, vt.data(), &ldvt, &want,
                &ask, rwork.data(), iwork.data(), &info, 1);
        const int size = Asked(want);
        std::vector<T> work(static_cast<size_t>(size));
        zgesdd_(&mode, &m, &n, a.data(), &lda, s.data(), u.data(), &lda, vt.data(), &ldvt,
                work.data(), &size, rwork.data(), iwork.data(), &info, 1);
      }
    }
    if (mode == 'N') {
      batch.Put(b, ColumnMajor{a, m}, s, NotMade{}, NotMade{}, info);
    } else {
      batch.Put(b, ColumnMajor{a, m}, s, ColumnMajor{u, m}, ColumnMajor{vt, rows}, info);
    }
  });
}

// Schur form, Schur vectors, eigenvalues (real: two results), selected, info.
template <typename T>
Result<Value> Gees(const LapackCall& call) {
  MatrixBatch<T> batch(call);
  const int n = batch.rows(), ld = AtLeastOne(n);
  const size_t length = static_cast<size_t>(ld);
  const char mode = call.Attr("mode", 'V') == 'N' ? 'N' : 'V', sort = 'N';
  return batch.ForEach([&](int64_t b) {
    std::vector<T> a = batch.Matrix(0, b), vs(Square(n)), w(length);
    std::vector<double> imag(length), rwork(length);
    const int size = 16 * ld + 64;
    std::vector<T> work(static_cast<size_t>(size));
    std::vector<int> unused(length);
    int info = 0, selected = 0;
    if constexpr (kIsReal<T>) {
      dgees_(&mode, &sort, nullptr, &n, a.data(), &ld, &selected, w.data(), imag.data(), vs.data(),
             &ld, work.data(), &size, unused.data(), &info, 1, 1);
      batch.Put(b, ColumnMajor{a, n}, ColumnMajor{vs, n}, w, imag, selected, info);
    } else {
      zgees_(&mode, &sort, nullptr, &n, a.data(), &ld, &selected, w.data(), vs.data(), &ld,
             work.data(), &size, rwork.data(), unused.data(), &info, 1, 1);
      batch.Put(b, ColumnMajor{a, n}, ColumnMajor{vs, n}, w, selected, info);
    }
  });
}

// The one for complex numbers or the one for real numbers, as the call has them.
template <LapackFn complex, LapackFn real>
Result<Value> ByType(const LapackCall& call) {
  return call.is_complex ? complex(call) : real(call);
}

}  // namespace

LapackFn FindDecomposition(std::string_view name) {
  if (name == "syevd" || name == "eigh") return ByType<Syevd<Complex>, Syevd<double>>;
  if (name == "geev") return ByType<ComplexGeev, RealGeev>;
  if (name == "gesdd" || name == "gesvd") return ByType<Gesdd<Complex>, Gesdd<double>>;
  if (name == "gees") return ByType<Gees<Complex>, Gees<double>>;
  return nullptr;
}

#else

LapackFn FindDecomposition(std::string_view) {
  return nullptr;
}

#endif  // TOK_HAVE_LAPACK

}  // namespace tokamak
