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

inline constexpr uint32_t kMaxTeams = UINT32_MAX - 2;

enum class ThreadState : uint8_t { kReady, kAtBlock, kAtWarp, kDone };

struct SimThread {
  ThreadState state = ThreadState::kReady;
  uint32_t pc = 0;
  std::vector<Bits> slots;
  uint64_t mask = 1;            // lanes that are live
  std::vector<uint64_t> masks;  // of the blocks around
  SimAgent agent;
  uint32_t runs = 0;              // of vector loops, so far
  std::vector<uint32_t> decided;  // per uniform decision, how often
};

// Runs the teams of one kernel, their threads in turns.
class TeamSimulator {
 public:
  TeamSimulator(const Kernel& kernel, const SimOptions& options);

  const SimProgram& program() const { return program_; }
  uint32_t threads() const { return static_cast<uint32_t>(threads_.size()); }
  uint64_t teams() const { return teams_; }
  int64_t steps() const { return steps_; }

  // How many teams it has. False when they are too many.
  bool CountTeams(std::vector<int64_t> grid);

  // `arrays`: where its arrays are in the memory. `first_team`: its number in the launch.
  void Begin(SimMemory& memory, std::span<const uint32_t> arrays, uint64_t first_team,
             std::span<const int64_t> extents);

  // False after a fault.
  bool RunTeam(uint64_t number);

  Error Fault() { return std::move(error_); }

 private:
  void Prepare(std::span<const int64_t> extents);

  bool RunAlone();
  bool RunTogether();
  bool AllDone() const;

  // Every thread waits or is done: lets those go on that have all come.
  bool Meet();
  std::span<SimThread> Warp(size_t number);
  void Release(SimThread& thread);
  bool MeetWarp(size_t warp, std::span<SimThread> lanes);
  bool Diverged();

  // Runs until it ends, waits or makes way.
  bool RunThread(SimThread& thread);
  bool MakesWay(const SimOp& op);

  // The operations that decide where to go on, and for which lanes.
  bool Branch(SimThread& thread, const SimOp& op);
  static uint64_t MaskOf(const SimThread& thread, SimOperand condition, uint32_t lanes);

  // The n-th time that a thread comes to a uniform decision, it decides as the others did.
  bool Agree(SimThread& thread, const SimOp& op, bool holds);
  template <typename Body>
  static bool EachLane(const SimThread& thread, const SimOp& op, Body&& body);
  bool Checked(SimThread& thread, const SimOp& op);
  bool ReadElements(SimThread& thread, const SimOp& op);
  bool StoreElements(SimThread& thread, const SimOp& op);
  bool Multiply(SimThread& thread, const SimOp& op);
  bool ShuffleLanes(SimThread& thread, const SimOp& op);

  bool FaultAt(const SimThread& thread, ErrorCode code, const std::string& what);

  const Kernel& kernel_;
  SimProgram program_;
  SimMemory* memory_ = nullptr;
  std::span<const uint32_t> arrays_;
  SimOptions options_;
  std::vector<int64_t> grid_;
  uint64_t teams_ = 1, first_team_ = 0;
  SplitMix64 draw_;
  std::vector<SimThread> threads_;
  std::vector<std::vector<uint8_t>> decisions_;
  uint32_t block_epoch_ = 0;
  std::vector<uint32_t> warp_epochs_;
  int64_t steps_ = 0;
  Error error_;
};

}  // namespace tokamak
