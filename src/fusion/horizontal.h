#pragma once

#include "cost/machine.h"
#include "explain/decision.h"
#include "fusion/plan.h"

namespace tokamak {

// Horizontal fusion: one launch whose grid is the concatenation of the grids of several kernels. It
// saves launches and fills idle SMs; it saves no memory traffic.
//
// Fills `plan.launch_groups` with kernels that do not depend on each other, not even indirectly, if
// the saved launches pay. Launch groups have no cyclic dependences. Peak temporary memory does not
// grow beyond a small bound. Deterministic. Logs one decision per launch group and one per kernel
// left out of one.
void FuseHorizontally(ComputationPlan& plan, const Machine& machine, DecisionLog& log);

// For tests: fuses all kernels of the same dependence level, whatever the cost.
void FuseAllHorizontally(ComputationPlan& plan);

}  // namespace tokamak
