#pragma once

#include "fusion/plan.h"

namespace tokamak {

// Producers into consumers by rules of thumb, from the last instruction to the first; without
// `fuse` a kernel for each instruction. Every kernel of the plan is built.
ComputationPlan PlanFirst(const Computation& computation, const Machine& machine, bool fuse,
                          DecisionLog& log);

}  // namespace tokamak
