// Decompositions: syevd, geev, gesdd, gesvd, gees. Operands and results are those of JAX's CPU
// calls.

#include <algorithm>
#include <cmath>

#include "interp/lapack.h"
#include "interp/lapack_routines.h"
#include "interp/matrix_batch.h"

namespace tokamak {

namespace {

size_t Square(int n) {
  return static_cast<size_t>(AtLeastOne(n)) * static_cast<size_t>(AtLeastOne(n));
}
// The result of a workspace query. A float may have been rounded down.
template <typename T>
int Asked(T answer) {
  RealOf<T> size = std::real(answer);
  return std::max(1, static_cast<int>(std::nextafter(size, 2 * size)));
}

// geev calls gebal, which reports a NaN or infinity as an invalid argument and aborts the process.
template <typename T>
bool AllFinite(const std::vector<T>& a) {
  return std::all_of(a.begin(), a.end(), [](const T& x) { return std::isfinite(std::abs(x)); });
}
constexpr int kNotFinite = -4;  // info value, as in JAX's own call

// syevd with a workspace that the matrices of a batch share.
template <typename T>
class Eigh {
 public:
  Eigh(int n, char mode, char uplo) : n_(n), mode_(mode), uplo_(uplo) {
    values.assign(static_cast<size_t>(AtLeastOne(n)), 0);
    T want{};
    RealOf<T> rwant = 0;
    int iwant = 0;
    Call(nullptr, Workspace{&want, -1, &rwant, -1, &iwant, -1});
    work_.resize(static_cast<size_t>(Asked(want)));
    if constexpr (!kIsReal<T>) rwork_.resize(static_cast<size_t>(Asked(rwant)));
    iwork_.resize(static_cast<size_t>(std::max(1, iwant)));
  }
  // Overwrites `a` with the eigenvectors. Returns info.
  int Run(std::vector<T>& a) {
    return Call(a.data(), Workspace{work_.data(), static_cast<int>(work_.size()), rwork_.data(),
                                    static_cast<int>(rwork_.size()), iwork_.data(),
                                    static_cast<int>(iwork_.size())});
  }
  std::vector<RealOf<T>> values;

 private:
  struct Workspace {
    T* work;
    int size;
    RealOf<T>* rwork;
    int rsize;
    int* iwork;
    int isize;
  };
  int Call(T* a, const Workspace& space) {
    const int lda = AtLeastOne(n_);
    int info = 0;
    if constexpr (kIsReal<T>) {
      Lapack<T>().syevd(&mode_, &uplo_, &n_, a, &lda, values.data(), space.work, &space.size,
                        space.iwork, &space.isize, &info, 1, 1);
    } else {
      Lapack<T>().syevd(&mode_, &uplo_, &n_, a, &lda, values.data(), space.work, &space.size,
                        space.rwork, &space.rsize, space.iwork, &space.isize, &info, 1, 1);
    }
    return info;
  }

  const int n_;
  const char mode_, uplo_;
  std::vector<T> work_;
  std::vector<RealOf<T>> rwork_;
  std::vector<int> iwork_;
};

// lapack_*syevd_ffi: vectors, values, info. XLA's Eigh returns the same without info.
template <typename T>
Status Syevd(const LapackCall& call) {
  MatrixBatch<T> batch(call);
  const char mode = call.Attr("mode", 'V') == 'N' ? 'N' : 'V';
  Eigh<T> eigh(batch.rows(), mode, call.Letter("uplo", 'L'));
  std::vector<T> a;
  return batch.ForEach([&](int64_t b) {
    batch.Matrix(0, b, a);
    const int info = eigh.Run(a);
    batch.Put(b, ColumnMajor{a, batch.rows()}, eigh.values, info);
  });
}

// LAPACK stores a pair of conjugate eigenvectors as real and imaginary part.
template <typename T>
std::vector<std::complex<T>> Unpacked(const std::vector<T>& v, const std::vector<T>& imag, int n) {
  std::vector<std::complex<T>> unpacked(v.size());
  for (int j = 0; j < n; ++j) {
    bool pair = imag[static_cast<size_t>(j)] != 0 && j + 1 < n;
    for (int i = 0; i < n; ++i) {
      size_t at = MatrixBatch<T>::Index(i, j, n);
      if (!pair) {
        unpacked[at] = v[at];
        continue;
      }
      size_t next = MatrixBatch<T>::Index(i, j + 1, n);
      unpacked[at] = std::complex<T>(v[at], v[next]);
      unpacked[next] = std::complex<T>(v[at], -v[next]);
    }
    if (pair) ++j;
  }
  return unpacked;
}

// Real: real parts, imaginary parts, left and right vectors (complex), info.
template <typename T>
Status RealGeev(const LapackCall& call) {
  MatrixBatch<T> batch(call);
  const int n = batch.rows(), ld = AtLeastOne(n);
  const char left = call.Letter("compute_left", 'N');
  const char right = call.Letter("compute_right", 'V');
  std::vector<T> a, vl(Square(n)), vr(Square(n));
  return batch.ForEach([&](int64_t b) {
    batch.Matrix(0, b, a);
    std::vector<T> real(static_cast<size_t>(ld)), imag(static_cast<size_t>(ld));
    const int size = 16 * ld + 64;
    std::vector<T> work(static_cast<size_t>(size));
    int info = AllFinite(a) ? 0 : kNotFinite;
    if (info == 0)
      Lapack<T>().geev(&left, &right, &n, a.data(), &ld, real.data(), imag.data(), vl.data(), &ld,
                       vr.data(), &ld, work.data(), &size, &info, 1, 1);
    batch.Put(b, real, imag, ColumnMajor{Unpacked(vl, imag, n), n},
              ColumnMajor{Unpacked(vr, imag, n), n}, info);
  });
}

// Complex: values, left and right vectors, info.
template <typename T>
Status ComplexGeev(const LapackCall& call) {
  MatrixBatch<T> batch(call);
  const int n = batch.rows(), ld = AtLeastOne(n);
  const char left = call.Letter("compute_left", 'N');
  const char right = call.Letter("compute_right", 'V');
  std::vector<T> a, vl(Square(n)), vr(Square(n));
  return batch.ForEach([&](int64_t b) {
    batch.Matrix(0, b, a);
    std::vector<T> w(static_cast<size_t>(ld));
    std::vector<RealOf<T>> rwork(static_cast<size_t>(2 * ld));
    const int size = 16 * ld + 64;
    std::vector<T> work(static_cast<size_t>(size));
    int info = AllFinite(a) ? 0 : kNotFinite;
    if (info == 0)
      Lapack<T>().geev(&left, &right, &n, a.data(), &ld, w.data(), vl.data(), &ld, vr.data(), &ld,
                       work.data(), &size, rwork.data(), &info, 1, 1);
    batch.Put(b, w, ColumnMajor{vl, n}, ColumnMajor{vr, n}, info);
  });
}

// One matrix of a singular-value call, in the form that gesdd and gesvd take.
template <typename T>
struct SvdItem {
  char mode;
  int m, n, lda, ldvt;
  std::vector<T> a, u, vt;
  std::vector<RealOf<T>> s;

  // Divide and conquer: gesdd. Returns info.
  int DivideAndConquer(T* work, int size, std::vector<RealOf<T>>& rwork, std::vector<int>& iwork) {
    int info = 0;
    if constexpr (kIsReal<T>) {
      Lapack<T>().gesdd(&mode, &m, &n, a.data(), &lda, s.data(), u.data(), &lda, vt.data(), &ldvt,
                        work, &size, iwork.data(), &info, 1);
    } else {
      Lapack<T>().gesdd(&mode, &m, &n, a.data(), &lda, s.data(), u.data(), &lda, vt.data(), &ldvt,
                        work, &size, rwork.data(), iwork.data(), &info, 1);
    }
    return info;
  }
  // QR iteration: gesvd.
  int Iterate(T* work, int size, std::vector<RealOf<T>>& rwork, std::vector<int>&) {
    int info = 0;
    if constexpr (kIsReal<T>) {
      Lapack<T>().gesvd(&mode, &mode, &m, &n, a.data(), &lda, s.data(), u.data(), &lda, vt.data(),
                        &ldvt, work, &size, &info, 1, 1);
    } else {
      Lapack<T>().gesvd(&mode, &mode, &m, &n, a.data(), &lda, s.data(), u.data(), &lda, vt.data(),
                        &ldvt, work, &size, rwork.data(), &info, 1, 1);
    }
    return info;
  }
};

// Singular values: the overwritten operand, values, left vectors, right vectors (adjoint), info.
// Mode A: all vectors, S: as many as values, N: none.
template <typename T, typename Method>
Status Svd(const LapackCall& call, Method method) {
  MatrixBatch<T> batch(call);
  const int m = batch.rows(), n = batch.columns(), k = std::min(m, n);
  const int64_t asked = call.Attr("mode", 'A');
  const char mode = asked == 'A' || asked == 'S' ? static_cast<char>(asked) : 'N';
  const int columns = mode == 'A' ? m : k, rows = mode == 'A' ? n : k;
  const size_t least = static_cast<size_t>(AtLeastOne(k)),
               most = static_cast<size_t>(std::max(m, n));
  std::vector<RealOf<T>> rwork(
      kIsReal<T> ? 0 : least * std::max(5 * least + 7, 2 * most + 2 * least + 1) + 64);
  std::vector<int> iwork(8 * least);
  SvdItem<T> item{mode, m, n, AtLeastOne(m), AtLeastOne(rows), {}, {}, {}, {}};
  item.u.resize(static_cast<size_t>(item.lda) * static_cast<size_t>(AtLeastOne(columns)));
  item.vt.resize(static_cast<size_t>(item.ldvt) * static_cast<size_t>(AtLeastOne(n)));
  item.s.resize(least);
  std::vector<T> work;
  return batch.ForEach([&](int64_t b) {
    batch.Matrix(0, b, item.a);
    int info = 0;
    if (k > 0 && work.empty()) {
      T want{};
      (item.*method)(&want, -1, rwork, iwork);
      work.resize(static_cast<size_t>(Asked(want)));
    }
    if (k > 0) info = (item.*method)(work.data(), static_cast<int>(work.size()), rwork, iwork);
    if (mode == 'N') {
      batch.Put(b, ColumnMajor{item.a, m}, item.s, NotMade{}, NotMade{}, info);
    } else {
      batch.Put(b, ColumnMajor{item.a, m}, item.s, ColumnMajor{item.u, m},
                ColumnMajor{item.vt, rows}, info);
    }
  });
}
template <typename T>
Status Gesdd(const LapackCall& call) {
  return Svd<T>(call, &SvdItem<T>::DivideAndConquer);
}
template <typename T>
Status Gesvd(const LapackCall& call) {
  return Svd<T>(call, &SvdItem<T>::Iterate);
}

// Schur form, Schur vectors, eigenvalues (real: two results), selected, info.
template <typename T>
Status Gees(const LapackCall& call) {
  MatrixBatch<T> batch(call);
  const int n = batch.rows(), ld = AtLeastOne(n);
  const size_t length = static_cast<size_t>(ld);
  const char mode = call.Attr("mode", 'V') == 'N' ? 'N' : 'V', sort = 'N';
  std::vector<T> a, vs(Square(n)), w(length);
  return batch.ForEach([&](int64_t b) {
    batch.Matrix(0, b, a);
    std::vector<RealOf<T>> imag(length), rwork(length);
    const int size = 16 * ld + 64;
    std::vector<T> work(static_cast<size_t>(size));
    std::vector<int> unused(length);
    int info = 0, selected = 0;
    if constexpr (kIsReal<T>) {
      Lapack<T>().gees(&mode, &sort, nullptr, &n, a.data(), &ld, &selected, w.data(), imag.data(),
                       vs.data(), &ld, work.data(), &size, unused.data(), &info, 1, 1);
      batch.Put(b, ColumnMajor{a, n}, ColumnMajor{vs, n}, w, imag, selected, info);
    } else {
      Lapack<T>().gees(&mode, &sort, nullptr, &n, a.data(), &ld, &selected, w.data(), vs.data(),
                       &ld, work.data(), &size, rwork.data(), unused.data(), &info, 1, 1);
      batch.Put(b, ColumnMajor{a, n}, ColumnMajor{vs, n}, w, selected, info);
    }
  });
}

template <typename T>
Status Geev(const LapackCall& call) {
  if constexpr (kIsReal<T>) {
    return RealGeev<T>(call);
  } else {
    return ComplexGeev<T>(call);
  }
}

}  // namespace

LapackFn FindDecomposition(std::string_view name) {
#define TOK_LAPACK(text, Fn)                                                 \
  if (name == text) {                                                        \
    return [](const LapackCall& call) {                                      \
      return InPrecisionOf(call, [&]<typename T>() { return Fn<T>(call); }); \
    };                                                                       \
  }
  TOK_LAPACK("syevd", Syevd)
  TOK_LAPACK("eigh", Syevd)
  TOK_LAPACK("geev", Geev)
  TOK_LAPACK("gesdd", Gesdd)
  TOK_LAPACK("gesvd", Gesvd)
  TOK_LAPACK("gees", Gees)
#undef TOK_LAPACK
  return nullptr;
}

}  // namespace tokamak
