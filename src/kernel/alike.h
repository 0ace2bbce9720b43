#pragma once

#include <vector>

#include "kernel/kernel.h"

namespace tokamak {

// Values that are the same in all teams, threads and lanes, at any one time: made of constants, of
// variables of serial loops, of what is loaded at such places from arguments that nothing writes,
// and of registers that hold only such values, stored by all alike.
class Alike {
 public:
  explicit Alike(const Kernel& kernel);

  bool operator()(ValueId id) const { return values_[static_cast<size_t>(id)]; }

 private:
  void FindValues(const Kernel& kernel);
  bool FindArrays(const Kernel& kernel, const Block& block, bool for_some);

  std::vector<bool> values_, arrays_;
};

}  // namespace tokamak
