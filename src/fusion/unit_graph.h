#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "fusion/plan.h"
#include "ir/ir.h"

namespace tokamak {

// The dependence graph of a plan. Its nodes are called units: kernels, and instructions outside
// kernels; kernels have the first numbers. The graph predicts the order in which lowering will
// schedule the units, and the peak temporary memory, before lowering creates execution steps.
class UnitGraph {
 public:
  explicit UnitGraph(const ComputationPlan& plan);

  int num_kernels() const { return num_kernels_; }
  int size() const { return static_cast<int>(dependencies_.size()); }
  // The units that must run before this one.
  const std::vector<int>& dependencies(int unit) const {
    return dependencies_[static_cast<size_t>(unit)];
  }

  // The position of each unit in the schedule; -1 if it never runs, because no result or effect
  // depends on it. The kernels of a launch group have the same position. `launch_group_of`: by
  // kernel, -1 if it is in none. Returns an empty vector if launch groups depend on each other
  // cyclically.
  std::vector<int> ScheduleOf(const std::vector<int>& launch_group_of) const;

  struct Memory {
    int64_t peak_bytes = 0;  // of temporary arrays
    int peak_position = 0;   // in the schedule
    // By kernel: bytes of the arrays live at the peak that it writes, or whose last reader it is.
    std::vector<int64_t> bytes_at_peak;
  };
  // `positions`: a result of ScheduleOf.
  Memory MemoryOf(const std::vector<int>& positions) const;

 private:
  // The memory of the value of one instruction: an array, or all arrays of a tuple. An alias
  // (IsAlias) outside kernels has no buffer of its own.
  struct Buffer {
    int64_t bytes = 0;       // 0 for parameters and constants
    bool is_result = false;  // of the computation: not temporary
    int unit = -1;           // that writes it
  };
  // A kernel may write an output into the buffer of an input. Indices into buffers_.
  struct InPlaceReuse {
    int input = -1, output = -1;
  };
  struct LiveRanges;

  void AddUnits();
  void AddDependencies();
  void AddBuffers();
  // `buffers`: the buffers that hold the value of each instruction. An alias outside kernels has
  // those of its operands, so a `tuple` instruction may have several. Any other instruction has
  // one, or none if it is internal to kernels.
  void AddReads(const InstrMap<std::vector<int>>& buffers);
  void AddInPlaceReuses(const InstrMap<std::vector<int>>& buffers);
  // `end`: the position after the last unit.
  LiveRanges LiveRangesOf(const std::vector<int>& positions, int end) const;
  // Accounts for outputs that reuse the buffer of an input.
  void ReuseInputBuffers(const std::vector<int>& positions, LiveRanges& ranges) const;

  const ComputationPlan& plan_;
  int num_kernels_;
  std::vector<Instr*> order_;
  InstrMap<int> unit_of_;
  std::vector<const Instr*> instr_of_;          // by unit - num_kernels_
  std::vector<std::vector<int>> dependencies_;  // by unit
  // Units that must run: instructions with side effects in program order, then the computation's
  // root.
  std::vector<int> required_units_;
  std::vector<Buffer> buffers_;
  std::vector<std::vector<int>> reads_;                     // by unit: buffers that it reads
  std::vector<std::vector<InPlaceReuse>> in_place_reuses_;  // by kernel
};

}  // namespace tokamak
