#pragma once

#include <cstdint>
#include <vector>

#include "kernel/kernel.h"

namespace tokamak {

// Value ranges of integers, for index simplification and bounds checks.

// What is known about an integer x: low <= x <= high, and x is a multiple of `stride`.
struct Range {
  int64_t low = INT64_MIN, high = INT64_MAX;
  int64_t stride = 1;  // 0 if x is 0

  bool IsConstant() const { return low == high; }
  bool operator==(const Range&) const = default;
};

// Memoized ranges of the indices of a kernel.
class RangeTable {
 public:
  // `kernel` may grow between calls; existing nodes must not change. Operands precede their users.
  Range Of(const Kernel& kernel, ValueId id);

 private:
  Range Find(const Kernel& kernel, ValueId id) const;
  std::vector<Range> ranges_;
};

}  // namespace tokamak
