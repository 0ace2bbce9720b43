#pragma once

#include <cstdint>
#include <vector>

#include "kernel/kernel.h"

namespace tokamak {

// What an integer is known to be: low <= x <= high, and a multiple of `stride`.
struct Range {
  int64_t low = INT64_MIN, high = INT64_MAX;
  int64_t stride = 1;  // 0: x is 0

  bool IsConstant() const { return low == high; }
  bool operator==(const Range&) const = default;
};

// Ranges of the indices of a kernel, each found once.
class RangeTable {
 public:
  // `kernel` may grow between calls, never change. Operands are older than their users.
  Range Of(const Kernel& kernel, ValueId id);

 private:
  Range Find(const Kernel& kernel, ValueId id) const;
  std::vector<Range> ranges_;
};

}  // namespace tokamak
