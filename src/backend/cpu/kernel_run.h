#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernel/kernel.h"
#include "support/splitmix.h"

// For tests: runs a kernel in the simulator and as machine code and compares the results bit by
// bit.

namespace tokamak::cpu {

// Elements of one argument, in the memory format of the kernel IR.
using Bytes = std::vector<uint8_t>;

// Random numbers of a type: moderate ones, so that arithmetic stays finite, or with `wild` any bits
// including special values.
Bytes Draw(ScalarType type, int64_t count, SplitMix64& random, bool wild = false);

struct Difference {
  std::string text;  // empty if there is none
};

// Runs both on copies of `arguments` (one per argument of the kernel, at least its size) and
// reports the first difference in the results; all NaNs are equal. The grid is run in two ranges.
Difference Compare(const Kernel& kernel, const std::vector<Bytes>& arguments,
                   const std::vector<int64_t>& extents = {});

}  // namespace tokamak::cpu
