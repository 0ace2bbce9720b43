#pragma once

#include <set>

#include "kernel/kernel.h"

namespace tokamak::cuda {

// The 32-bit additions that are better written as multiply-adds: the pipe of shifts, logic and
// comparisons would be busier with them than the pipe that multiplies. Most kernels have none.
std::set<ValueId> MultipliedSums(const Kernel& kernel);

}  // namespace tokamak::cuda
