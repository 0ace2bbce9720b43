#pragma once

// LAPACK's routines, looked up on first use: from the host if it provides them (SetLapackFinder:
// SciPy's, which JAX's CPU backend calls too), otherwise from the machine's library. Nothing links
// to LAPACK. The trailing sizes are the lengths of the character arguments, as gfortran passes
// them; routines without character arguments ignore them.

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
};
template <typename T>
struct Parts<std::complex<T>> {
  using Real = T;
};
}  // namespace lapack_internal

template <typename T>
using RealOf = typename lapack_internal::Parts<T>::Real;

// T: float, double, or complex of either. Either all routines are present or LAPACK counts as
// absent. The names are those for real numbers: orgqr is ungqr for complex ones, ormqr unmqr, sytrd
// hetrd, syevd heevd.
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

// Returns null if LAPACK is absent. The result of the first call is cached.
template <typename T>
const LapackRoutines<T>* FindLapack();
// Like the above; requires HaveLapack().
template <typename T>
const LapackRoutines<T>& Lapack() {
  return *FindLapack<T>();
}
// Whether the routines were found or can be found.
bool HaveLapack();

// Returns the address of a routine such as "dgetrf", or null. Called by the first thread that needs
// LAPACK; must not be called while holding a lock that other threads need.
using LapackFinder = void* (*)(const char* name);
void SetLapackFinder(LapackFinder finder);

// The minimum of a leading dimension or a workspace size.
inline int AtLeastOne(int n) {
  return n < 1 ? 1 : n;
}

}  // namespace tokamak
