#pragma once

#include "cost/machine.h"
#include "ir/ir.h"

namespace tokamak {

// A split of K of a dot into slices, and the predicted times before and after it.
struct DepthSplit {
  int64_t slices = 1;  // 1: no split is faster
  double before_us = 0, after_us = 0;
};
// The split that split-dots prefers for a dot whose operands the bulk copy engine can read.
DepthSplit ChooseDepthSplit(const Instr& dot, const Machine& machine);

}  // namespace tokamak
