#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "kernel/sim_copies.h"
#include "kernel/sim_copies_back.h"
#include "kernel/sim_multiplies.h"
#include "support/splitmix.h"

namespace tokamak {

// Asynchronous work of one thread block in the simulator: mbarriers, bulk copies and asynchronous
// multiplies.
//
// A copy happens at any time between its issue and the completion of its phase, a copy back or a
// multiply between its issue and the first wait for it. With a seed these times are random. Without
// one, both happen as late as possible: a copy when no thread can run. A thread that does not wait,
// or waits for the wrong phase, then runs as far ahead of the work as it can. Whether accesses are
// ordered does not depend on these times (ClockOrder), but what a thread reads does, and how far it
// gets.
class SimAsync {
 public:
  SimAsync(const Kernel& kernel, const SimProgram& program, uint32_t threads,
           std::optional<uint64_t> seed);
  SimAsync(const SimAsync&) = delete;
  SimAsync& operator=(const SimAsync&) = delete;

  // Whether a program has asynchronous work.
  static bool IsIn(const SimProgram& program);

  // Begins a thread block with this number, 1-based.
  void Begin(SimMemory& memory, std::span<const uint32_t> arrays, uint32_t block);
  ClockOrder& clocks() { return state_.clocks; }
  // The statement of the error that another function returned.
  SimPosition position() const { return state_.position; }
  // Operations of asynchronous work since the last call.
  int64_t TakeSteps();

  // Executes a thread's statement, or sets the thread's state to what it waits for.
  Status Execute(SimThread& thread, const SimOp& op);
  // All threads of a warp have reached an await; of a warpgroup, a multiply.
  Status Await(std::span<const SimThread> warp, const SimOp& op);
  Status Multiply(std::span<const SimThread> warpgroup, const SimOp& op);

  // Whether a thread in state kAtMbarrier can run.
  bool IsOver(const SimThread& thread) const {
    return state_.mbarriers.PhaseOf(thread.mbarrier) > thread.phase;
  }
  // Called once per round of the scheduler: runs the work that is due.
  Status RunDue();
  // Called when no thread can run: runs a copy.
  bool HasCopies() const { return copies_.IsPending(); }
  Status RunCopy();
  // What a thread in state kAtMbarrier waits for: "waits for phase 0 of full[1], which lacks ...".
  std::string WaitOf(const SimThread& thread) const;
  // Whether the uninitialized element that was read is one that a pending copy stores.
  bool ReadTooSoon() const {
    return copies_.WillStore(state_.memory->error_array(), state_.memory->error_index());
  }
  // Called when all threads are done.
  Status Finish();

 private:
  Status Wait(SimThread& thread, const SimOp& op, uint32_t mbarrier);
  uint32_t DrawIterations();

  const SimProgram& program_;
  SimAsyncState state_;
  SimCopies copies_;
  SimCopiesBack copies_back_;
  SimMultiplies multiplies_;
  bool is_random_;
  SplitMix64 draw_;
};

}  // namespace tokamak
