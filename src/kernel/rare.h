#pragma once

#include <span>
#include <vector>

#include "kernel/kernel.h"

namespace tokamak {

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

  // Calls `value` for each of these values in their order, but `arm` for each arm that is `kept`,
  // in place of its selects and values: where the first of its selects stands.
  template <typename Kept, typename Value, typename OfArm>
  void Walk(std::span<const ValueId> ids, Kept kept, Value value, OfArm arm) const {
    std::vector<Arm> arms = In(ids);
    std::erase_if(arms, [&](const Arm& some) { return !kept(some); });
    std::vector<bool> done(arms.empty() ? 0 : kernel_.nodes.size());
    for (const Arm& some : arms)
      for (const auto& part : {some.values, some.selects})
        for (ValueId id : part) done[static_cast<size_t>(id)] = true;
    for (ValueId id : ids) {
      if (done.empty() || !done[static_cast<size_t>(id)]) {
        value(id);
        continue;
      }
      for (const Arm& some : arms)
        if (some.selects.front() == id) arm(some);
    }
  }

 private:
  bool IsRare(ValueId condition) const;
  double Magnitude(ValueId constant) const;
  bool FillArm(std::span<const ValueId> ids, Arm& arm) const;

  const Kernel& kernel_;
  std::vector<std::vector<ValueId>> users_;
  std::vector<bool> is_stated_;  // a statement uses it
};

}  // namespace tokamak
