#pragma once

#include "fusion/kernel_memo.h"
#include "fusion/plan.h"

namespace tokamak {

// The baseline planner: fuses producers into consumers by heuristics in one pass from the last
// instruction to the first (first_planner.cc). Its plan is one of the plans from which the search
// starts. Without `fuse`, every instruction gets its own kernel. All kernels of the plan are built.
ComputationPlan PlanFirst(KernelMemo& kernels, bool fuse, DecisionLog& log);

}  // namespace tokamak
