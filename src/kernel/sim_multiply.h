#pragma once

#include <span>

#include "kernel/sim_memory.h"
#include "kernel/sim_program.h"

namespace tokamak {

// Executes a `multiply` statement of the calling thread: all of a per-thread multiply, or the
// thread's accumulators of a block-wide one. `arrays` maps the kernel's arrays to the memory's.
// Products are accumulated in order of increasing depth with one rounding each. False after a
// memory error.
bool MultiplyMatrices(const Kernel& kernel, const SimOp& op, const SimAgent& agent,
                      std::span<const Bits> slots, std::span<const uint32_t> arrays,
                      SimMemory& memory);
// The number of multiply-adds of the statement.
int64_t MultiplicationsOf(const SimOp& op, std::span<const Bits> slots);

}  // namespace tokamak
