#pragma once

#include <vector>

#include "kernel/kernel.h"

namespace tokamak {

// Uniformity analysis: values that are equal in all thread blocks, threads and lanes at any one
// time. These are constants, variables of serial loops, loads at uniform indices from read-only
// arguments, registers to which only uniform values are stored under uniform control flow, and all
// values computed from them.
class UniformValues {
 public:
  explicit UniformValues(const Kernel& kernel);

  bool operator()(ValueId id) const { return values_[static_cast<size_t>(id)]; }

 private:
  void FindValues(const Kernel& kernel);
  bool FindArrays(const Kernel& kernel, const StmtList& block, bool for_some);

  std::vector<bool> values_, arrays_;
};

}  // namespace tokamak
