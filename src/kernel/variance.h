#pragma once

#include <vector>

#include "kernel/kernel.h"

namespace tokamak {

// What differs between the lanes of a vector loop, and between the threads of a team.
//
// An array of registers is one thread's own, shared by its lanes, unless some statement under a
// vector loop stores to an index that is the same for all lanes: then every lane has its own copy
// of the array. A store to such an array outside of vector loops sets the copies of all lanes; it
// is read under vector loops only (verify.h).
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
  bool FindArrays(const Kernel& kernel, const Block& block, bool in_vector);

  std::vector<bool> by_lane_, by_thread_, per_lane_;
};

}  // namespace tokamak
