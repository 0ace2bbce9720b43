#include "backend/cpu/scratch.h"

#include <cstddef>
#include <new>

namespace tokamak::cpu {
namespace {

// Bytes: a page.
constexpr std::align_val_t kAlignment{4096};

// Grows in steps (chosen: 256 KiB), so that kernels with slightly different needs share an
// allocation.
struct Scratch {
  void* data = nullptr;
  int64_t bytes = 0;

  ~Scratch() { ::operator delete(data, kAlignment); }
  void* Take(int64_t wanted) {
    if (wanted <= bytes) return data;
    ::operator delete(data, kAlignment);
    constexpr int64_t kStep = 256 << 10;
    bytes = (wanted + kStep - 1) / kStep * kStep;
    data = ::operator new(static_cast<std::size_t>(bytes), kAlignment);
    return data;
  }
};

}  // namespace

void* TakeScratch(int64_t bytes) {
  thread_local Scratch scratch;
  return scratch.Take(bytes);
}

}  // namespace tokamak::cpu
