#pragma once

#include <cstdint>

#include "kernel/kernel.h"
#include "kernel/placement.h"

namespace tokamak {

// Register pressure of a thread, if values are computed where placement.h puts them and live until
// their last use. Constants are immediates. A value that a loop uses from outside lives until the
// loop ends.
struct Pressure {
  int scalars = 0;  // maximum number of live lane-uniform values
  // Maximum number of live lane-divergent values, and of register arrays that lanes index.
  int vectors = 0;
  // 32-bit registers: a 64-bit value occupies two, a vector its lanes' sum, a register array all of
  // its elements while it is live.
  int64_t thread_registers = 0;
};

// Requires a verified kernel. Linear in the number of values and uses.
Pressure PressureOf(const Kernel& kernel, const Placement& placement);
Pressure PressureOf(const Kernel& kernel);

// Minimum number of resident thread blocks per SM (the second argument of __launch_bounds__), so
// that some blocks run while others wait at their barriers. It limits the registers per thread.
int MinBlocksPerSm(const Kernel& kernel);

}  // namespace tokamak
