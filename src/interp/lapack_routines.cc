#include "interp/lapack_routines.h"

#include <atomic>
#include <dlfcn.h>
#include <memory>
#include <string>

namespace tokamak {
namespace {

std::atomic<LapackFinder> g_finder{nullptr};

// The machine's LAPACK: the system configuration selects the library (Debian: update-alternatives).
void* OpenMachines() {
  for (const char* name :
       {"liblapack.so.3", "libopenblas.so.0", "liblapack.so", "libopenblas.so"}) {
    void* library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) continue;
    if (dlsym(library, "dgetrf_") != nullptr && dlsym(library, "dtrsm_") != nullptr) return library;
    dlclose(library);
  }
  return nullptr;
}
void* Machines() {
  static void* library = OpenMachines();
  return library;
}

void* InMachines(const char* name) {
  return dlsym(Machines(), (std::string(name) + "_").c_str());
}

template <typename T>
constexpr char kLetter = kIsReal<T> ? (sizeof(T) == sizeof(float) ? 's' : 'd')
                                    : (sizeof(T) == sizeof(std::complex<float>) ? 'c' : 'z');

template <typename T>
std::unique_ptr<LapackRoutines<T>> TakeFrom(LapackFinder finder) {
  auto routines = std::make_unique<LapackRoutines<T>>();
  bool all = true;
  auto take = [&]<typename Fn>(Fn*& routine, const char* real, const char* complex) {
    if (!all) return;
    std::string name = kLetter<T> + std::string(kIsReal<T> ? real : complex);
    void* found = finder(name.c_str());
    routine = reinterpret_cast<Fn*>(found);
    all = found != nullptr;
  };
  take(routines->potrf, "potrf", "potrf");
  take(routines->getrf, "getrf", "getrf");
  take(routines->geqrf, "geqrf", "geqrf");
  take(routines->orgqr, "orgqr", "ungqr");
  take(routines->ormqr, "ormqr", "unmqr");
  take(routines->trsm, "trsm", "trsm");
  take(routines->gtsv, "gtsv", "gtsv");
  take(routines->gehrd, "gehrd", "gehrd");
  take(routines->sytrd, "sytrd", "hetrd");
  take(routines->geqp3, "geqp3", "geqp3");
  take(routines->syevd, "syevd", "heevd");
  take(routines->geev, "geev", "geev");
  take(routines->gesdd, "gesdd", "gesdd");
  take(routines->gesvd, "gesvd", "gesvd");
  take(routines->gees, "gees", "gees");
  return all ? std::move(routines) : nullptr;
}

}  // namespace

void SetLapackFinder(LapackFinder finder) {
  g_finder = finder;
}

bool HaveLapack() {
  return g_finder.load() != nullptr || Machines() != nullptr;
}

template <typename T>
const LapackRoutines<T>* FindLapack() {
  static const LapackRoutines<T>* const found = []() -> const LapackRoutines<T>* {
    LapackFinder finder = g_finder;
    auto routines = finder == nullptr ? nullptr : TakeFrom<T>(finder);
    if (routines == nullptr && Machines() != nullptr) routines = TakeFrom<T>(InMachines);
    return routines.release();  // lives as long as the process
  }();
  return found;
}

template const LapackRoutines<float>* FindLapack();
template const LapackRoutines<double>* FindLapack();
template const LapackRoutines<std::complex<float>>* FindLapack();
template const LapackRoutines<std::complex<double>>* FindLapack();

}  // namespace tokamak
