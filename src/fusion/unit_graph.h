#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "fusion/plan.h"
#include "ir/ir.h"

namespace tokamak {

// The units in which a computation runs: its kernels, by their numbers, then every other
// instruction that is not inside of kernels. What each needs, in which order lowering puts them,
// and what memory that takes: known before there are steps.
class UnitGraph {
 public:
  explicit UnitGraph(const ComputationPlan& plan);

  int kernels() const { return kernels_; }
  int size() const { return static_cast<int>(needs_.size()); }
  const std::vector<int>& needs(int unit) const { return needs_[static_cast<size_t>(unit)]; }

  // Where each unit stands when the kernels of a pack stand at one place; -1 of what never runs.
  // `pack_of`: by kernel, -1 of those in none. Empty when packs wait for each other.
  std::vector<int> Places(const std::vector<int>& pack_of) const;

  struct Memory {
    int64_t peak = 0;           // bytes of temporary arrays, at most
    int at = 0;                 // the place where that is
    std::vector<int64_t> held;  // by kernel: bytes there that it made, or is the last to read
  };
  Memory MemoryOf(const std::vector<int>& places) const;

 private:
  // An array, or all arrays of an instruction, that one memory holds.
  struct Value {
    int64_t bytes = 0;  // 0 of parameters and constants
    bool is_result = false;
    int unit = -1;
  };
  // What a kernel may write over what it reads.
  struct Pair {
    int input = -1, output = -1;
  };
  struct Lives;

  void AddUnits();
  void AddNeeds();
  void AddValues();
  void AddReads(const InstrMap<std::vector<int>>& values);
  void AddPairs(const InstrMap<std::vector<int>>& values);
  Lives LivesOf(const std::vector<int>& places, int end) const;
  void ShareMemory(const std::vector<int>& places, Lives& lives) const;

  const ComputationPlan& plan_;
  int kernels_;
  std::vector<Instr*> order_;
  InstrMap<int> unit_of_;
  std::vector<const Instr*> instr_of_;   // by unit less kernels_
  std::vector<std::vector<int>> needs_;  // by unit
  std::vector<int> wanted_;              // effects in their order, the root
  std::vector<Value> values_;
  std::vector<std::vector<int>> reads_;   // by unit: values
  std::vector<std::vector<Pair>> pairs_;  // by kernel
};

}  // namespace tokamak
