#pragma once

#include <cstdint>
#include <vector>

#include "kernel/scalar.h"
#include "kernel/sim_order.h"

namespace tokamak {

// What a thread of the simulator does: it runs, waits at a barrier or collective of the block, its
// warp or its warpgroup, waits for a phase of an mbarrier, or is done.
enum class ThreadState : uint8_t { kReady, kAtBlock, kAtWarp, kAtWarpgroup, kAtMbarrier, kDone };

struct SimThread {
  ThreadState state = ThreadState::kReady;
  uint32_t pc = 0;
  std::vector<Bits> slots;
  uint64_t mask = 1;            // active lanes
  std::vector<uint64_t> masks;  // saved masks of the enclosing statement blocks
  SimAgent agent;
  uint32_t runs = 0;              // number of vector-loop executions so far
  std::vector<uint32_t> decided;  // per uniform branch: number of times this thread reached it
  // The mbarrier and the phase that it waits for, from the wait until it runs again.
  bool waits = false;
  uint32_t mbarrier = 0;
  uint64_t phase = 0;
};

}  // namespace tokamak
