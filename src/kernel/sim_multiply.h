#pragma once

#include <array>
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
// An asynchronous multiply of a warpgroup, with evaluated operands.
struct WarpgroupMultiply {
  const MatrixMultiply* product = nullptr;
  ArrayId to{};
  int64_t to_at = 0, lhs_at = 0, rhs_at = 0, depth = 0;
  // The agents of its accesses of shared memory, and of the registers of each thread.
  SimAgent of_operands;
  std::array<SimAgent, kSimWarpgroup> of_threads;
};
// Executes all of it, in the same order of additions.
bool MultiplyOfWarpgroup(const Kernel& kernel, const WarpgroupMultiply& multiply,
                         std::span<const uint32_t> arrays, SimMemory& memory);
// The number of accumulators of a thread of an asynchronous multiply.
inline int64_t AccumulatorsOfWarpgroupThread(const MatrixMultiply& product) {
  return product.rows * product.columns / kSimWarpgroup;
}

// sum + x * y with one rounding, for x and y of type `from` and sums of type `to`.
Bits MultipliedAndAdded(ScalarType from, ScalarType to, Bits x, Bits y, Bits sum);
// The number of multiply-adds of the statement.
int64_t MultiplicationsOf(const SimOp& op, std::span<const Bits> slots);

}  // namespace tokamak
