#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "fusion/plan.h"
#include "ir/ir.h"

namespace tokamak {

// The dependence graph of a plan. A unit is a kernel or an instruction outside kernels; units are
// numbered kernels first. It predicts the order in which lowering will schedule them and the peak
// temporary memory, before steps exist.
class UnitGraph {
 public:
  explicit UnitGraph(const ComputationPlan& plan);

  int kernels() const { return kernels_; }
  int size() const { return static_cast<int>(needs_.size()); }
  const std::vector<int>& needs(int unit) const { return needs_[static_cast<size_t>(unit)]; }

  // The position of each unit in the schedule; -1 if it never runs. The kernels of a launch group
  // have the same position. `launch_group_of`: by kernel, -1 if it is in none. Returns an empty
  // vector if launch groups depend on each other cyclically.
  std::vector<int> ScheduleOf(const std::vector<int>& launch_group_of) const;

  struct Memory {
    int64_t peak = 0;           // bytes of temporary arrays
    int at = 0;                 // position of the peak
    std::vector<int64_t> held;  // by kernel: bytes live at the peak that it wrote or reads last
  };
  Memory MemoryOf(const std::vector<int>& positions) const;

 private:
  // One allocation: an array, or all arrays of an instruction.
  struct Value {
    int64_t bytes = 0;  // 0 for parameters and constants
    bool is_result = false;
    int unit = -1;
  };
  // An input whose buffer a kernel may reuse for an output.
  struct Pair {
    int input = -1, output = -1;
  };
  struct Lives;

  void AddUnits();
  void AddNeeds();
  void AddValues();
  void AddReads(const InstrMap<std::vector<int>>& values);
  void AddPairs(const InstrMap<std::vector<int>>& values);
  Lives LivesOf(const std::vector<int>& positions, int end) const;
  void AliasMemory(const std::vector<int>& positions, Lives& lives) const;

  const ComputationPlan& plan_;
  int kernels_;
  std::vector<Instr*> order_;
  InstrMap<int> unit_of_;
  std::vector<const Instr*> instr_of_;   // by unit - kernels_
  std::vector<std::vector<int>> needs_;  // by unit
  std::vector<int> wanted_;              // units that must run: effects in order, the root
  std::vector<Value> values_;
  std::vector<std::vector<int>> reads_;   // by unit: values that it reads
  std::vector<std::vector<Pair>> pairs_;  // by kernel
};

}  // namespace tokamak
