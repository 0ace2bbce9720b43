#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "kernel/sim_async_state.h"
#include "kernel/sim_program.h"
#include "kernel/sim_thread.h"

namespace tokamak {

// The bulk copies from shared memory of one thread block. One thread of each warp starts them. They
// read shared memory between their start and a wait of that thread, and nothing in the kernel is
// after their stores.
class SimCopiesBack {
 public:
  explicit SimCopiesBack(SimAsyncState& state);

  void Begin();
  // `coordinates`: slots of the box's coordinates. `iterations`: of the scheduler until the copy is
  // due (SimAsyncState::kLatest).
  Status Issue(const SimThread& thread, const SimOp& op, std::span<const uint32_t> coordinates,
               uint32_t iterations);
  // Runs the copies that are due, counting a round.
  Status RunDue();
  // Waits until at most the last `left` of the thread's copies read shared memory.
  Status Await(const SimThread& thread, int64_t left);
  // An error if a thread has not waited for a copy.
  Status CheckAllAwaited();

 private:
  // A copy that its thread has not waited for.
  struct Pending {
    const TileCopy* copy = nullptr;
    SimPosition position;
    uint32_t time = 0, iterations = 0;  // `time`: the number of the copy in its warp
    int64_t from_index = 0;
    std::vector<int64_t> at;
    bool done = false;
    VectorClock issued;
  };
  struct Warp {
    std::deque<Pending> pending;  // in order
    uint32_t thread = 0, issued = 0;
  };

  Status Run(Pending& pending);

  SimAsyncState& state_;
  std::vector<Warp> warps_;
};

}  // namespace tokamak
