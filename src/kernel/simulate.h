#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "kernel/kernel.h"
#include "kernel/write.h"
#include "support/result.h"

namespace tokamak {

// An argument of a launch: elements as kernel form has them in memory (a pred takes a byte).
// Arguments may overlap.
struct SimArgument {
  void* data = nullptr;
  int64_t elements = 0;
};

struct SimOptions {
  // Teams, and threads between accesses of memory that they share, take turns in an order drawn
  // from this; nothing: in the order of their numbers, after each access.
  std::optional<uint64_t> seed;
  int64_t max_steps = int64_t{1} << 34;
  // Where faults are located; nothing: in the text of WriteKernel.
  const KernelPlaces* places = nullptr;
};

struct SimReport {
  int64_t steps = 0;  // operations, those of several lanes counted once
  // Per argument: elements that a kernel which only writes it has not stored to; 0 for others.
  std::vector<int64_t> unwritten;
};

// Runs a verified kernel on the host: the law for backends. Teams run one after the other, the
// threads of a team interleaved, the lanes of a vector in lockstep. The first fault ends the run:
//
//   * an index out of the bounds of its array, a read of what nothing was stored to,
//   * two accesses of one element, one of them a store, that neither the order of one lane nor a
//     barrier puts in order; two stores of equal bits are none (overlapping tiles do that),
//   * a barrier or shuffle that not all threads of the block or warp (32 threads) come to, a
//     uniform decision that differs,
//   * an integer division by 0 or that overflows, an index beyond 32 bits where the kernel has so
//     few. Other results that prims.def leaves open are arbitrary values.
Result<SimReport> SimulateKernel(const Kernel& kernel, std::span<const SimArgument> arguments,
                                 std::span<const int64_t> extents = {}, SimOptions options = {});

// One kernel of several that are launched as one.
struct SimPart {
  const Kernel* kernel = nullptr;
  std::span<const SimArgument> arguments;
  std::span<const int64_t> extents = {};
};

// Runs verified kernels as one launch: its teams are those of the first, then those of the second
// and so on, in any order, and nothing puts one before another. The report has the arguments of all
// of them, one kernel's after the other's.
Result<SimReport> SimulatePack(std::span<const SimPart> parts, SimOptions options = {});

inline constexpr uint32_t kSimWarp = 32;

}  // namespace tokamak
