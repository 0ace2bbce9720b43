#pragma once

#include "fusion/kernel_memo.h"
#include "fusion/plan.h"

namespace tokamak {

// Producers into consumers by rules of thumb, from the last instruction to the first; without
// `fuse` a kernel for each instruction. Every kernel of the plan is built.
ComputationPlan PlanFirst(KernelMemo& kernels, bool fuse, DecisionLog& log);

}  // namespace tokamak
