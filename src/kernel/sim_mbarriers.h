#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernel/kernel.h"
#include "kernel/sim_clocks.h"
#include "support/result.h"

namespace tokamak {

// The mbarriers of one thread block, all arrays together, numbered in order. Errors are texts that
// continue "thread 3 ...".
class SimMbarriers {
 public:
  explicit SimMbarriers(const Kernel& kernel);

  uint32_t count() const { return static_cast<uint32_t>(mbarriers_.size()); }
  // Begins a thread block, whose clocks have this many agents.
  void Begin(size_t agents);

  Result<uint32_t> Find(uint32_t array, int64_t index) const;
  std::string NameOf(uint32_t mbarrier) const;  // "full[2]"

  // One arrival by a thread with this clock. The phase expects `bytes` more.
  Status Arrive(uint32_t mbarrier, const VectorClock& clock, int64_t bytes);
  // A copy, at time `time` of the agent `copies`, brings bytes.
  Status Bring(uint32_t mbarrier, int64_t bytes, uint32_t copies, uint32_t time);

  uint64_t PhaseOf(uint32_t mbarrier) const { return mbarriers_[mbarrier].phase; }
  bool IsComplete(uint32_t mbarrier, uint64_t parity) const {
    return PhaseOf(mbarrier) % 2 != parity;
  }
  // What happened before the completion of the last complete phase, or of earlier ones.
  const VectorClock& Completed(uint32_t mbarrier) const { return mbarriers_[mbarrier].completed; }

  // A thread waits for the current phase; and it runs again, when that phase is complete.
  void BeginWait(uint32_t mbarrier) { ++mbarriers_[mbarrier].waiting; }
  void EndWait(uint32_t mbarrier) { --mbarriers_[mbarrier].resuming; }

  // What the current phase lacks: "phase 0 of full[2] lacks 1 of 1 arrivals and 512 bytes".
  std::string Incomplete(uint32_t mbarrier) const;

 private:
  struct Mbarrier {
    uint32_t array = 0;
    int64_t index = 0, arrivals = 0;  // of each phase
    uint64_t phase = 0;
    int64_t missing = 0, bytes = 0;  // arrivals, bytes that the current phase still lacks
    // Threads that wait for the current phase, and that waited for the one before and did not run
    // since.
    int64_t waiting = 0, resuming = 0;
    VectorClock completed, current;
  };

  Status ExpectBytes(uint32_t mbarrier, int64_t bytes);
  Status CompleteIfDone(uint32_t mbarrier);

  const Kernel& kernel_;
  std::vector<Mbarrier> mbarriers_;
  std::vector<uint32_t> first_;  // per array of the kernel
};

}  // namespace tokamak
