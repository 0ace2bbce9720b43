#pragma once

#include <span>
#include <vector>

#include "kernel/kernel.h"

namespace tokamak {

// Cold-path outlining: finds computations that only rare arguments need (huge, tiny or special
// values), so that backends can put them behind a branch.

// Whether a condition is rarely true: it compares with a huge or tiny constant.
bool IsColdCondition(const Kernel& kernel, ValueId condition);

// For a select whose condition is cold, the values that only its second operand (taken if the
// condition is true) needs. Backends branch around them.
class ColdPaths {
 public:
  // The kernel must outlive this object and must not change.
  explicit ColdPaths(const Kernel& kernel);

  struct ColdPath {
    ValueId condition = kNoValue;
    std::vector<ValueId> selects = {};  // all selects with this condition that share the values
    std::vector<ValueId> values = {};   // in topological order, operands first
  };
  // The cold paths among `ids`, values that are computed in this order. Paths do not nest.
  std::vector<ColdPath> In(std::span<const ValueId> ids) const;

  // Visits the values in topological order, otherwise in the order of `ids`. Calls `path` once for
  // each cold path that `kept` accepts, instead of `value` for its selects and values. A path whose
  // selects depend on each other is not outlined.
  template <typename Kept, typename Value, typename OfPath>
  void Walk(std::span<const ValueId> ids, Kept kept, Value value, OfPath path) const {
    std::vector<ColdPath> paths = In(ids);
    std::erase_if(paths, [&](const ColdPath& some) { return !kept(some); });
    if (paths.empty()) {
      for (ValueId id : ids) value(id);
      return;
    }
    for (const Step& step : Ordered(ids, paths)) {
      if (step.path == nullptr) {
        value(step.value);
      } else {
        path(*step.path);
      }
    }
  }

 private:
  struct Step {
    ValueId value = kNoValue;
    const ColdPath* path = nullptr;
  };
  std::vector<Step> Ordered(std::span<const ValueId> ids, std::vector<ColdPath>& paths) const;
  bool FillPath(std::span<const ValueId> ids, ColdPath& path) const;

  const Kernel& kernel_;
  std::vector<std::vector<ValueId>> users_;
  std::vector<bool> used_by_stmt_;  // operand of a statement
};

}  // namespace tokamak
