#pragma once

#include <cstdint>
#include <span>

#include "backend/cpu/codegen.h"
#include "kernel/kernel.h"

namespace tokamak {
class ThreadPool;
}

namespace tokamak::cpu {

// A kernel with its extents, ready to run any number of times.
struct Launch {
  KernelFn function = nullptr;
  int64_t grid = 1;   // iterations to divide
  int64_t grain = 1;  // so many are worth a thread's while
};

// `extents`: a number for each extent of the kernel.
Launch PlanLaunch(const Kernel& kernel, KernelFn function, std::span<const int64_t> extents = {});

// Runs it with rounding to nearest and subnormals kept, whatever the caller's settings, which are
// restored. `pool` may be null. Results do not depend on the number of threads.
void RunLaunch(const Launch& launch, void* const* arguments, const int64_t* extents,
               ThreadPool* pool);

// Nanoseconds that one iteration of the grid takes, roughly: what is computed and moved, counted by
// vectors.
double EstimateIteration(const Kernel& kernel, std::span<const int64_t> extents);

}  // namespace tokamak::cpu
