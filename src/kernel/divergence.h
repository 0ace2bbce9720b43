#pragma once

#include <vector>

#include "kernel/kernel.h"

namespace tokamak {

// Divergence analysis: which values differ between the lanes of a vector loop, and between the
// threads of a thread block.
//
// An array in registers belongs to a thread and is shared by its lanes. The exception: under a
// vector loop of two or more lanes, a statement stores to a lane-uniform index, and the stored
// value or its condition is divergent. Then each lane has a private copy of the array. A store to
// such an array outside of vector loops sets the copies of all lanes; reads are allowed under
// vector loops only (verify.h). A store whose index, value and condition are all lane-uniform
// happens once per thread.
class Divergence {
 public:
  // Requires well-formed nodes: operands precede users, ids are in range.
  explicit Divergence(const Kernel& kernel);

  bool ByLane(ValueId id) const { return by_lane_[static_cast<size_t>(id)]; }
  // Conservative: true if the value may differ.
  bool ByThread(ValueId id) const { return by_thread_[static_cast<size_t>(id)]; }
  bool PerLane(ArrayId id) const { return per_lane_[static_cast<size_t>(id)]; }

 private:
  void FindValues(const Kernel& kernel);
  bool FindArrays(const Kernel& kernel, const StmtList& block, bool in_vector, bool for_some);

  std::vector<bool> by_lane_, by_thread_, per_lane_;
};

// Whether the loop's lanes can diverge: a vector loop of two or more lanes.
bool IsVector(const Kernel& kernel, const Loop& loop);

}  // namespace tokamak
