#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "kernel/kernel.h"
#include "kernel/write.h"
#include "support/result.h"

namespace tokamak {

// A checked simulator of kernel IR. It defines the reference semantics of kernels for the backends,
// and it detects the errors that would be silent on a GPU: data races, divergent barriers,
// uninitialized reads, out-of-bounds accesses.
//
// It decodes a kernel to bytecode (sim_program.h), runs thread block after thread block with
// interleaved threads (sim_blocks.h) and asynchronous work (sim_async.h), and checks every access
// against shadow memory (sim_memory.h).
// Example of a detected race:
//   thread t < 64 {
//     store s[t] = v0
//     v1: f32 = read s[63 - t]   // error: no barrier between the store and the read
//   }

// An argument of a launch, in the memory layout of kernel IR (a pred occupies one byte). Arguments
// may overlap.
struct SimArgument {
  void* data = nullptr;
  int64_t elements = 0;
};

struct SimOptions {
  // Seed of a random schedule of the thread blocks, of the threads between accesses of shared
  // state, and of asynchronous work. Without it, blocks run in order, threads switch round-robin
  // after each access, and asynchronous work happens as late as possible.
  std::optional<uint64_t> seed;
  // Operations before the run is aborted. Chosen: only runaway loops reach it.
  int64_t max_steps = int64_t{1} << 34;
  // Source locations for error messages. If null, they refer to the text of WriteKernel.
  const KernelLocations* locations = nullptr;
};

struct SimReport {
  int64_t steps = 0;  // executed operations; a vector operation counts once
  // Per argument: elements of a write-only argument that the kernel did not store. 0 for others.
  std::vector<int64_t> unwritten;
};

// Runs a verified kernel on the host. Thread blocks run in sequence, the threads of a block
// interleaved, the lanes of a vector in lockstep. The first error ends the run:
//
//   * an out-of-bounds index, or a read of uninitialized memory,
//   * a data race: two accesses of one element, at least one a store, ordered neither by program
//     order of one lane nor by a barrier or mbarrier. Two stores of equal bits are not a race
//     (overlapping tiles do that). An asynchronous multiply or copy needs also a fence after the
//     stores of threads, and accesses after a multiply need the await of all its warps,
//   * a barrier, shuffle or multiply that not all threads of the thread block, warp or warpgroup
//     reach, or a divergent branch that is marked uniform,
//   * a wait for a phase of an mbarrier that never completes, or that the thread can miss, or more
//     arrivals than a phase has,
//   * a tile of a copy or multiply that is not aligned, or such work that is not waited for,
//   * an integer division by 0 or that overflows, or an index that does not fit 32 bits if the
//     kernel has 32-bit indices. Other results that prims.def leaves unspecified are arbitrary
//     values.
Result<SimReport> SimulateKernel(const Kernel& kernel, std::span<const SimArgument> arguments,
                                 std::span<const int64_t> extents = {}, SimOptions options = {});

// One of several kernels of a horizontally fused launch.
struct SimLaunch {
  const Kernel* kernel = nullptr;
  std::span<const SimArgument> arguments;
  std::span<const int64_t> extents = {};
};

// Runs verified kernels as one horizontally fused launch: its grid is the concatenation of the
// grids of the kernels. Blocks are unordered. The report lists the arguments of all kernels in
// order.
Result<SimReport> SimulateHorizontal(std::span<const SimLaunch> entries, SimOptions options = {});

// Threads per warp (CUDA programming guide).
inline constexpr uint32_t kSimWarp = 32;

}  // namespace tokamak
