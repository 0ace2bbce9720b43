#pragma once

// LAPACK's own routines in double and complex double; Pick takes one by type. The
// trailing sizes are the lengths of the character arguments, as gfortran
// passes them.

#include <complex>
#include <cstddef>
#include <type_traits>

#if TOK_HAVE_LAPACK

extern "C" {
using TokZ = std::complex<double>;
void dpotrf_(const char*, const int*, double*, const int*, int*, size_t);
void zpotrf_(const char*, const int*, TokZ*, const int*, int*, size_t);
void dgetrf_(const int*, const int*, double*, const int*, int*, int*);
void zgetrf_(const int*, const int*, TokZ*, const int*, int*, int*);
void dgeqrf_(const int*, const int*, double*, const int*, double*, double*, const int*, int*);
void zgeqrf_(const int*, const int*, TokZ*, const int*, TokZ*, TokZ*, const int*, int*);
void dorgqr_(const int*, const int*, const int*, double*, const int*, const double*, double*,
             const int*, int*);
void zungqr_(const int*, const int*, const int*, TokZ*, const int*, const TokZ*, TokZ*, const int*,
             int*);
void dgeqp3_(const int*, const int*, double*, const int*, int*, double*, double*, const int*, int*);
void zgeqp3_(const int*, const int*, TokZ*, const int*, int*, TokZ*, TokZ*, const int*, double*,
             int*);
void dormqr_(const char*, const char*, const int*, const int*, const int*, const double*,
             const int*, const double*, double*, const int*, double*, const int*, int*, size_t,
             size_t);
void zunmqr_(const char*, const char*, const int*, const int*, const int*, const TokZ*, const int*,
             const TokZ*, TokZ*, const int*, TokZ*, const int*, int*, size_t, size_t);
void dtrsm_(const char*, const char*, const char*, const char*, const int*, const int*,
            const double*, const double*, const int*, double*, const int*, size_t, size_t, size_t,
            size_t);
void ztrsm_(const char*, const char*, const char*, const char*, const int*, const int*, const TokZ*,
            const TokZ*, const int*, TokZ*, const int*, size_t, size_t, size_t, size_t);
void dgtsv_(const int*, const int*, double*, double*, double*, double*, const int*, int*);
void zgtsv_(const int*, const int*, TokZ*, TokZ*, TokZ*, TokZ*, const int*, int*);
void dgehrd_(const int*, const int*, const int*, double*, const int*, double*, double*, const int*,
             int*);
void zgehrd_(const int*, const int*, const int*, TokZ*, const int*, TokZ*, TokZ*, const int*, int*);
void dsytrd_(const char*, const int*, double*, const int*, double*, double*, double*, double*,
             const int*, int*, size_t);
void zhetrd_(const char*, const int*, TokZ*, const int*, double*, double*, TokZ*, TokZ*, const int*,
             int*, size_t);
void dsyevd_(const char*, const char*, const int*, double*, const int*, double*, double*,
             const int*, int*, const int*, int*, size_t, size_t);
void zheevd_(const char*, const char*, const int*, TokZ*, const int*, double*, TokZ*, const int*,
             double*, const int*, int*, const int*, int*, size_t, size_t);
void dgeev_(const char*, const char*, const int*, double*, const int*, double*, double*, double*,
            const int*, double*, const int*, double*, const int*, int*, size_t, size_t);
void zgeev_(const char*, const char*, const int*, TokZ*, const int*, TokZ*, TokZ*, const int*,
            TokZ*, const int*, TokZ*, const int*, double*, int*, size_t, size_t);
void dgesdd_(const char*, const int*, const int*, double*, const int*, double*, double*, const int*,
             double*, const int*, double*, const int*, int*, int*, size_t);
void zgesdd_(const char*, const int*, const int*, TokZ*, const int*, double*, TokZ*, const int*,
             TokZ*, const int*, TokZ*, const int*, double*, int*, int*, size_t);
void dgees_(const char*, const char*, void*, const int*, double*, const int*, int*, double*,
            double*, double*, const int*, double*, const int*, int*, int*, size_t, size_t);
void zgees_(const char*, const char*, void*, const int*, TokZ*, const int*, int*, TokZ*, TokZ*,
            const int*, TokZ*, const int*, double*, int*, int*, size_t, size_t);
}

namespace tokamak {

template <typename T>
constexpr bool kIsReal = std::is_same_v<T, double>;

// The routine for numbers of type T, of the two that do the same.
template <typename T, typename Real, typename Complex>
constexpr auto Pick(Real* real, Complex* complex) {
  if constexpr (kIsReal<T>) {
    return real;
  } else {
    return complex;
  }
}

// What a leading dimension or a workspace is at the least.
inline int AtLeastOne(int n) {
  return n < 1 ? 1 : n;
}

}  // namespace tokamak

#endif  // TOK_HAVE_LAPACK
