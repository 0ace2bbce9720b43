#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kernel/sim_async.h"
#include "kernel/sim_memory.h"
#include "kernel/sim_program.h"
#include "kernel/sim_thread.h"
#include "kernel/simulate.h"
#include "support/splitmix.h"

namespace tokamak {

// Execution of thread blocks in the simulator (simulate.h): an interpreter loop over SimOps for
// each thread, a scheduler that interleaves the threads of a block, barriers, and checks for
// divergence.

// Thread-block numbers are 1-based uint32_t, and two values are reserved (sim_memory.cc).
inline constexpr uint32_t kMaxSimulatedBlocks = UINT32_MAX - 2;

// Runs the thread blocks of one kernel, each with its threads interleaved.
class BlockSimulator {
 public:
  BlockSimulator(const Kernel& kernel, const SimOptions& options);

  const SimProgram& program() const { return program_; }
  uint32_t threads() const { return static_cast<uint32_t>(threads_.size()); }
  uint64_t blocks() const { return blocks_; }
  int64_t steps() const { return steps_; }

  // Computes the number of thread blocks from the grid's extents. False if there are too many.
  bool CountBlocks(std::vector<int64_t> grid);

  // `arrays`: the kernel's arrays as indices into the memory's arrays. `first_block`: the number of
  // this kernel's first block in the launch.
  void Begin(SimMemory& memory, std::span<const uint32_t> arrays, uint64_t first_block,
             std::span<const int64_t> extents);

  // False after an error.
  bool SimulateBlock(uint64_t number);

  Error TakeError() { return std::move(error_); }

 private:
  void Prepare(std::span<const int64_t> extents);

  bool RunSingleThread();
  bool RunInterleaved();
  bool AllDone() const;

  // Called when every thread waits or is done. Releases the barriers that all threads have reached,
  // or runs asynchronous work.
  bool SyncBlock();
  // Release the warps (warpgroups) all of whose threads have reached one barrier or collective, and
  // set `any` if there is one.
  bool SyncWarps(bool& any);
  bool SyncWarpgroups(bool& any);
  // The threads of a warp, or of a group of so many threads.
  std::span<SimThread> Group(size_t number, size_t size = kSimWarp);
  void Release(SimThread& thread);
  bool SyncWarp(size_t warp, std::span<SimThread> lanes);
  // The threads that a thread at a barrier or collective waits for.
  struct Collective {
    const char* scope;
    std::span<const SimThread> threads;
  };
  Collective CollectiveOf(const SimThread& thread);
  // Reports that the other threads of the thread's barrier or collective do not reach it.
  bool Diverged(const SimThread& waits);

  // ---- asynchronous work; only if there is some
  bool Succeeded(Status status);
  bool ExecuteAsync(SimThread& thread, const SimOp& op);
  // Called in each round of the scheduler.
  bool RunAsync();
  // Reports why no thread can run.
  bool Deadlocked();

  // Runs until the thread ends, waits or yields.
  bool RunThread(SimThread& thread);
  bool MayYield(const SimOp& op);

  // Control flow: sets the next pc and the lane mask.
  bool Branch(SimThread& thread, const SimOp& op);
  static uint64_t MaskOf(const SimThread& thread, SimOperand condition, uint32_t lanes);

  // Checks that the n-th execution of a uniform branch goes the same way in all threads.
  bool CheckUniform(SimThread& thread, const SimOp& op, bool holds);
  template <typename Body>
  static bool EachLane(const SimThread& thread, const SimOp& op, Body&& body);
  bool Checked(SimThread& thread, const SimOp& op);
  bool ReadElements(SimThread& thread, const SimOp& op);
  bool StoreElements(SimThread& thread, const SimOp& op);
  bool Multiply(SimThread& thread, const SimOp& op);
  bool ShuffleLanes(SimThread& thread, const SimOp& op);

  bool FailAt(const SimThread& thread, ErrorCode code, const std::string& what) {
    return FailAt({thread.agent.thread, thread.pc}, code, what);
  }
  bool FailAt(SimPosition at, ErrorCode code, const std::string& what);

  const Kernel& kernel_;
  SimProgram program_;
  SimMemory* memory_ = nullptr;
  std::span<const uint32_t> arrays_;
  SimOptions options_;
  std::vector<int64_t> grid_;
  uint64_t blocks_ = 1, first_block_ = 0;
  SplitMix64 draw_;
  std::vector<SimThread> threads_;
  std::unique_ptr<SimAsync> async_;  // null without asynchronous work
  std::vector<std::vector<uint8_t>> decisions_;
  uint32_t block_epoch_ = 0;
  std::vector<uint32_t> warp_epochs_;
  int64_t steps_ = 0;
  Error error_;
};

}  // namespace tokamak
