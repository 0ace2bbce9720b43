#pragma once

#include <cstdint>
#include <vector>

#include "kernel/kernel.h"

namespace tokamak::cuda {

// Where the arrays of a team lie in its memory.
struct TeamMemory {
  std::vector<int64_t> offsets;  // per array of the kernel; of others 0
  int64_t bytes = 0;
};

// One after the other. `shared`: an array that the threads touch first when a barrier has put them
// behind their last touch of another may lie where that one did.
TeamMemory TeamMemoryOf(const Kernel& kernel, bool shared);

}  // namespace tokamak::cuda
