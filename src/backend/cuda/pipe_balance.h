#pragma once

#include <set>

#include "kernel/kernel.h"

namespace tokamak::cuda {

// Operations that are better written as multiplications: the pipe of shifts, logic and comparisons
// would be busier with them than the pipe that multiplies. Most kernels have none.
struct PipeBalance {
  std::set<ValueId> sums;       // 32-bit additions, as multiply-adds
  std::set<ValueId> rotations;  // of 32 bits by a constant, as products of 64 bits
};
PipeBalance BalancePipes(const Kernel& kernel);

// By how many bits to the left an `or` of shifts rotates 32 bits; 0: it is no rotation by a
// constant.
int RotatedBits(const Kernel& kernel, ValueId id);

}  // namespace tokamak::cuda
