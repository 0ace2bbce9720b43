#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "kernel/sim_memory.h"
#include "kernel/sim_program.h"
#include "kernel/simulate.h"
#include "support/splitmix.h"

namespace tokamak {

// Execution of thread blocks in the simulator (simulate.h): an interpreter loop over SimOps for
// each thread, a scheduler that interleaves the threads of a block, barriers, and checks for
// divergence.

// Thread-block numbers are 1-based uint32_t, and two values are reserved (sim_memory.cc).
inline constexpr uint32_t kMaxSimulatedBlocks = UINT32_MAX - 2;

enum class ThreadState : uint8_t { kReady, kAtBlock, kAtWarp, kDone };

struct SimThread {
  ThreadState state = ThreadState::kReady;
  uint32_t pc = 0;
  std::vector<Bits> slots;
  uint64_t mask = 1;            // active lanes
  std::vector<uint64_t> masks;  // saved masks of the enclosing statement blocks
  SimAgent agent;
  uint32_t runs = 0;              // number of vector-loop executions so far
  std::vector<uint32_t> decided;  // per uniform branch: number of times this thread reached it
};

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

  // Called when every thread waits or is done. Releases the barriers that all threads have reached.
  bool SyncBlock();
  std::span<SimThread> Warp(size_t number);
  void Release(SimThread& thread);
  bool SyncWarp(size_t warp, std::span<SimThread> lanes);
  bool Diverged();

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

  bool FailAt(const SimThread& thread, ErrorCode code, const std::string& what);

  const Kernel& kernel_;
  SimProgram program_;
  SimMemory* memory_ = nullptr;
  std::span<const uint32_t> arrays_;
  SimOptions options_;
  std::vector<int64_t> grid_;
  uint64_t blocks_ = 1, first_block_ = 0;
  SplitMix64 draw_;
  std::vector<SimThread> threads_;
  std::vector<std::vector<uint8_t>> decisions_;
  uint32_t block_epoch_ = 0;
  std::vector<uint32_t> warp_epochs_;
  int64_t steps_ = 0;
  Error error_;
};

}  // namespace tokamak
