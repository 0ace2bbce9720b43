#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernel/kernel.h"
#include "support/splitmix.h"

// For tests: a kernel on the simulator and as machine code, compared bit by bit.

namespace tokamak::cpu {

// Elements of one argument, as kernel form has them in memory.
using Bytes = std::vector<uint8_t>;

// Ordinary numbers of a type, for arithmetic that stays finite; `wild`: any bits, and what is
// special.
Bytes Draw(ScalarType type, int64_t count, SplitMix64& random, bool wild = false);

struct Difference {
  std::string text;  // "" when there is none
};

// Runs both on copies of `arguments` (one per argument of the kernel, at least its size) and says
// where what they leave differs first; a NaN equals any other. The grid is run in two parts.
Difference Compare(const Kernel& kernel, const std::vector<Bytes>& arguments,
                   const std::vector<int64_t>& extents = {});

}  // namespace tokamak::cpu
