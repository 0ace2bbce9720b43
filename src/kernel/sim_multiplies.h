#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "kernel/sim_async_state.h"
#include "kernel/sim_program.h"
#include "kernel/sim_thread.h"

namespace tokamak {

// The asynchronous multiplies of the warpgroups of one thread block.
class SimMultiplies {
 public:
  explicit SimMultiplies(SimAsyncState& state);

  void Begin();
  // All threads of a warpgroup have reached the statement. `iterations`: of the scheduler until the
  // multiply is due (SimAsyncState::kLatest).
  Status Issue(std::span<const SimThread> threads, const SimOp& op, uint32_t iterations);
  // Runs the multiplies that are due. `count`: counts a round first.
  Status RunDue();
  // All threads of a warp have reached an await.
  Status Await(std::span<const SimThread> warp, const SimOp& op);
  // An error if a warp has not awaited a multiply.
  Status CheckAllAwaited();

 private:
  // A multiply that at least one warp has not awaited.
  struct Pending {
    const SimOp* op = nullptr;
    SimPosition position;
    uint32_t time = 0, iterations = 0;  // `time`: the number of the multiply in its warpgroup
    int64_t to_at = 0, lhs_at = 0, rhs_at = 0, depth = 0;
    bool done = false;
    // What happened before the issue: in all threads, and for the registers of each thread, in it.
    VectorClock issued, issued_by_thread;
  };
  struct Warpgroup {
    std::deque<Pending> pending;  // in order
    uint32_t issued = 0;
    uint32_t awaited[kSimWarpgroupWarps] = {};  // per warp: the number of multiplies
  };

  Status CheckOperands(std::span<const SimThread> threads, const SimOp& op) const;
  Status CheckAlignment(const Pending& pending) const;
  Status CheckRegisters(const Warpgroup& warpgroup, const Pending& pending) const;
  Status RunUpTo(uint32_t number, uint32_t time);
  Status Run(uint32_t number, Pending& pending);

  SimAsyncState& state_;
  std::vector<Warpgroup> warpgroups_;
};

}  // namespace tokamak
