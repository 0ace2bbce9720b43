#pragma once

#include <span>
#include <vector>

#include "kernel/kernel.h"

namespace tokamak {

// Whether a condition holds for few numbers: it compares with something huge or tiny.
bool IsRare(const Kernel& kernel, ValueId condition);

// What is computed for rare numbers only: of a select whose condition is rare, the values that
// nobody needs but its first arm. They are worth a branch around them.
class RareArms {
 public:
  // The kernel must outlive this and stay as it is.
  explicit RareArms(const Kernel& kernel);

  struct Arm {
    ValueId condition = kNoValue;
    std::vector<ValueId> selects = {};  // with this condition, all that share the values
    std::vector<ValueId> values = {};   // operands first
  };
  // The arms among values that are computed in this order, none within another.
  std::vector<Arm> In(std::span<const ValueId> ids) const;

  // Calls `value` for each of these values, but `arm` for each arm that is `kept`, in place of its
  // selects and values: operands first, else in their order. An arm whose selects need one another
  // is none.
  template <typename Kept, typename Value, typename OfArm>
  void Walk(std::span<const ValueId> ids, Kept kept, Value value, OfArm arm) const {
    std::vector<Arm> arms = In(ids);
    std::erase_if(arms, [&](const Arm& some) { return !kept(some); });
    if (arms.empty()) {
      for (ValueId id : ids) value(id);
      return;
    }
    for (const Step& step : Ordered(ids, arms)) {
      if (step.arm == nullptr) {
        value(step.value);
      } else {
        arm(*step.arm);
      }
    }
  }

 private:
  struct Step {
    ValueId value = kNoValue;
    const Arm* arm = nullptr;
  };
  std::vector<Step> Ordered(std::span<const ValueId> ids, std::vector<Arm>& arms) const;
  bool FillArm(std::span<const ValueId> ids, Arm& arm) const;

  const Kernel& kernel_;
  std::vector<std::vector<ValueId>> users_;
  std::vector<bool> is_stated_;  // a statement uses it
};

}  // namespace tokamak
