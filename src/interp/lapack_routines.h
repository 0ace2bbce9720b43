#pragma once

// LAPACK's own routines, found when the first of them is needed: the host may offer them
// (SetLapackFinder: those of SciPy, which JAX's CPU backend calls too), else the machine's library
// is opened. Nothing links to LAPACK. The trailing sizes are the lengths of the character
// arguments, as gfortran passes them; routines that take none do not see them.

#include <complex>
#include <cstddef>
#include <type_traits>

namespace tokamak {

template <typename T>
constexpr bool kIsReal = std::is_floating_point_v<T>;

namespace lapack_internal {
template <typename T>
struct Parts {
  using Real = T;
  using Wide = double;
};
template <typename T>
struct Parts<std::complex<T>> {
  using Real = T;
  using Wide = std::complex<double>;
};
}  // namespace lapack_internal

template <typename T>
using RealOf = typename lapack_internal::Parts<T>::Real;
// double or complex double: what arrays of the interpreter hold.
template <typename T>
using WideOf = typename lapack_internal::Parts<T>::Wide;

// T: float, double, complex of either. All are there or there is no LAPACK. The names are those for
// real numbers: orgqr is ungqr for complex ones, ormqr unmqr, sytrd hetrd, syevd heevd.
template <typename T>
struct LapackRoutines {
  using R = RealOf<T>;
  template <typename Real, typename Complex>
  using ByKind = std::conditional_t<kIsReal<T>, Real, Complex>*;
  using Int = const int*;
  using Char = const char*;

  void (*potrf)(Char, Int, T*, Int, int*, size_t);
  void (*getrf)(Int, Int, T*, Int, int*, int*);
  void (*geqrf)(Int, Int, T*, Int, T*, T*, Int, int*);
  void (*orgqr)(Int, Int, Int, T*, Int, const T*, T*, Int, int*);
  void (*ormqr)(Char, Char, Int, Int, Int, const T*, Int, const T*, T*, Int, T*, Int, int*, size_t,
                size_t);
  void (*trsm)(Char, Char, Char, Char, Int, Int, const T*, const T*, Int, T*, Int, size_t, size_t,
               size_t, size_t);
  void (*gtsv)(Int, Int, T*, T*, T*, T*, Int, int*);
  void (*gehrd)(Int, Int, Int, T*, Int, T*, T*, Int, int*);
  void (*sytrd)(Char, Int, T*, Int, R*, R*, T*, T*, Int, int*, size_t);
  ByKind<void(Int, Int, T*, Int, int*, T*, T*, Int, int*),
         void(Int, Int, T*, Int, int*, T*, T*, Int, R*, int*)>
      geqp3;
  ByKind<void(Char, Char, Int, T*, Int, R*, T*, Int, int*, Int, int*, size_t, size_t),
         void(Char, Char, Int, T*, Int, R*, T*, Int, R*, Int, int*, Int, int*, size_t, size_t)>
      syevd;
  ByKind<void(Char, Char, Int, T*, Int, T*, T*, T*, Int, T*, Int, T*, Int, int*, size_t, size_t),
         void(Char, Char, Int, T*, Int, T*, T*, Int, T*, Int, T*, Int, R*, int*, size_t, size_t)>
      geev;
  ByKind<void(Char, Int, Int, T*, Int, R*, T*, Int, T*, Int, T*, Int, int*, int*, size_t),
         void(Char, Int, Int, T*, Int, R*, T*, Int, T*, Int, T*, Int, R*, int*, int*, size_t)>
      gesdd;
  ByKind<void(Char, Char, Int, Int, T*, Int, R*, T*, Int, T*, Int, T*, Int, int*, size_t, size_t),
         void(Char, Char, Int, Int, T*, Int, R*, T*, Int, T*, Int, T*, Int, R*, int*, size_t,
              size_t)>
      gesvd;
  ByKind<void(Char, Char, void*, Int, T*, Int, int*, T*, T*, T*, Int, T*, Int, int*, int*, size_t,
              size_t),
         void(Char, Char, void*, Int, T*, Int, int*, T*, T*, Int, T*, Int, R*, int*, int*, size_t,
              size_t)>
      gees;
};

// Null: there is no LAPACK here. What the first call finds stays.
template <typename T>
const LapackRoutines<T>* FindLapack();
// The same, where HaveLapack() was asked before.
template <typename T>
const LapackRoutines<T>& Lapack() {
  return *FindLapack<T>();
}
// Whether routines were found, or would be.
bool HaveLapack();

// Gives the address of a routine such as "dgetrf", or null. Called by any thread that is the first
// to need LAPACK; not while a lock is held that others need.
using LapackFinder = void* (*)(const char* name);
void SetLapackFinder(LapackFinder finder);

// What a leading dimension or a workspace is at the least.
inline int AtLeastOne(int n) {
  return n < 1 ? 1 : n;
}

}  // namespace tokamak
