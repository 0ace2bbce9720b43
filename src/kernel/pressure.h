#pragma once

#include <cstdint>

#include "kernel/kernel.h"
#include "kernel/placement.h"

namespace tokamak {

// How many registers a thread of a kernel needs, when values are computed where placement.h says
// and kept until their last use. Constants are in instructions; what a loop needs from outside is
// kept until it ends.
struct Pressure {
  int scalars = 0;    // values that are one for all lanes, the most at any place
  int vectors = 0;    // values that vary by lane, likewise, and registers that lanes index
  int64_t words = 0;  // 32-bit registers: a value of 64 bits takes two, a vector one set a lane,
                      // arrays of registers all that they hold, while they are in use
};

// Of a verified kernel. Linear in its values and uses.
Pressure PressureOf(const Kernel& kernel, const Placement& placement);
Pressure PressureOf(const Kernel& kernel);

// Teams that a GPU's multiprocessor should have room for, some of which run while others wait at
// their barriers: a thread gets no more registers than leave it.
int TeamsWanted(const Kernel& kernel);

}  // namespace tokamak
