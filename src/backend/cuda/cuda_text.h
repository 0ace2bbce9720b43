#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "kernel/kernel.h"
#include "support/result.h"

namespace tokamak::cuda {

// A kernel in CUDA C++, for NVRTC with --fmad=false and no headers.
struct CudaSource {
  std::string name;  // of the __global__ function, not mangled
  std::string text;
  // The block. The grid is one-dimensional: the product of the extents of all grid loops.
  std::array<int, 3> threads{1, 1, 1};
  // Team memory that the launch has to ask for: more than a block has without asking.
  int64_t dynamic_bytes = 0;
  bool uses_packs = false, uses_f16 = false, uses_bf16 = false;
};

// Of a verified kernel: parameters are the arguments, then the extents; one line a value; the
// kernel's notes stand above it. Lanes of a vector loop run one after the other in registers, and
// what they load and store side by side at an aligned place is one wide access. TK4120 when CUDA
// C++ has no form for it.
Result<CudaSource> CudaText(const Kernel& kernel);

}  // namespace tokamak::cuda
