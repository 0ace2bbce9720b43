#pragma once

#include <span>
#include <vector>

#include "kernel/kernel.h"

namespace tokamak::cpu {

// What is computed for rare numbers only: of a select whose condition compares with something huge
// or tiny, the values that nobody needs but its first arm. They are worth a branch around them.
class RareArms {
 public:
  // The kernel must outlive this and stay as it is.
  explicit RareArms(const Kernel& kernel);

  struct Arm {
    ValueId condition = kNoValue;
    std::vector<ValueId> selects = {};  // with this condition, all that share the values
    std::vector<ValueId> values = {};   // operands first
  };
  // The arms among values that are computed in this order, none within another. All that an arm
  // reads from outside, conditions and second arms included, stands before its first select.
  std::vector<Arm> In(std::span<const ValueId> ids) const;

 private:
  bool IsRare(ValueId condition) const;
  double Magnitude(ValueId constant) const;
  bool FillArm(std::span<const ValueId> ids, Arm& arm) const;

  const Kernel& kernel_;
  std::vector<std::vector<ValueId>> users_;
  std::vector<bool> is_stated_;  // a statement uses it
};

}  // namespace tokamak::cpu
