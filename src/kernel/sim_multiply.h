#pragma once

#include <span>

#include "kernel/sim_memory.h"
#include "kernel/sim_program.h"

namespace tokamak {

// A `multiply` of a kernel whose arrays have these numbers in the memory: one thread's, or the part
// that a thread has in a team's. False after a fault of the memory. Sums are made in the order of
// the depth, each with one rounding.
bool MultiplyMatrices(const Kernel& kernel, const SimOp& op, const SimAgent& agent,
                      std::span<const Bits> slots, std::span<const uint32_t> arrays,
                      SimMemory& memory);
// How many multiplications it is.
int64_t MultiplicationsOf(const SimOp& op, std::span<const Bits> slots);

}  // namespace tokamak
