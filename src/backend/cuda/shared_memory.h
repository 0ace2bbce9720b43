#pragma once

#include <cstdint>
#include <vector>

#include "kernel/kernel.h"

// Layout of a kernel's shared memory.
namespace tokamak::cuda {

// Offsets of the shared arrays of a block.
struct SharedMemoryLayout {
  std::vector<int64_t> offsets;  // per array of the kernel; 0 for other arrays
  int64_t bytes = 0, alignment = 16;
};

// Assigns offsets in sequence. With `reuse`, arrays whose lifetimes are disjoint overlap: an array
// may take the memory of another if a barrier separates its first access from the other's last.
// Arrays that asynchronous work accesses overlap no other.
SharedMemoryLayout SharedMemoryLayoutOf(const Kernel& kernel, bool reuse);

}  // namespace tokamak::cuda
