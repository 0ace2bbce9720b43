#pragma once

#include <cstdint>
#include <span>

#include "backend/cpu/codegen.h"
#include "kernel/kernel.h"

// Running a compiled kernel on the thread pool.
namespace tokamak {
class ThreadPool;
}

namespace tokamak::cpu {

// A kernel with its extents, ready to run any number of times.
struct Launch {
  KernelFn function = nullptr;
  int64_t grid = 1;       // iterations to divide
  int64_t min_chunk = 1;  // minimum number of iterations that amortizes waking a thread
};

// `extents`: one number per extent of the kernel.
Launch PlanLaunch(const Kernel& kernel, KernelFn function, std::span<const int64_t> extents = {});

// Runs it with rounding to nearest and with subnormals enabled, and restores the caller's
// floating-point settings. `pool` may be null. Results do not depend on the number of threads.
void RunLaunch(const Launch& launch, void* const* arguments, const int64_t* extents,
               ThreadPool* pool);

// A rough estimate of the nanoseconds per grid iteration: counts the vectors that are computed and
// moved.
double EstimateIteration(const Kernel& kernel, std::span<const int64_t> extents);

}  // namespace tokamak::cpu
