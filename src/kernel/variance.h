#pragma once

#include <vector>

#include "kernel/kernel.h"

namespace tokamak {

// What differs between the lanes of a vector loop, and between the threads of a team.
//
// An array of registers is one thread's own, shared by its lanes, unless some statement under a
// vector loop of two lanes or more stores to an index that is the same for all lanes, either values
// that vary by lane or for some of the lanes only: then every lane has its own copy of the array. A
// store to such an array outside of vector loops sets the copies of all lanes; it is read under
// vector loops only (verify.h). A store that is alike for all lanes is the thread's: it happens
// once.
class Variance {
 public:
  // The nodes of the kernel must be sound: operands older than users, numbers in range.
  explicit Variance(const Kernel& kernel);

  bool ByLane(ValueId id) const { return by_lane_[static_cast<size_t>(id)]; }
  // True when it may.
  bool ByThread(ValueId id) const { return by_thread_[static_cast<size_t>(id)]; }
  bool PerLane(ArrayId id) const { return per_lane_[static_cast<size_t>(id)]; }

 private:
  void FindValues(const Kernel& kernel);
  bool FindArrays(const Kernel& kernel, const Block& block, bool in_vector, bool for_some);

  std::vector<bool> by_lane_, by_thread_, per_lane_;
};

// Whether a loop has lanes that can differ: a vector loop of two or more.
bool IsVector(const Kernel& kernel, const Loop& loop);

}  // namespace tokamak
