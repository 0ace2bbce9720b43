#pragma once

#include "cost/machine.h"
#include "explain/decision.h"
#include "fusion/plan.h"

namespace tokamak {

// Horizontal fusion: one launch whose grid is the concatenation of the grids of several kernels. It
// saves launches and fills idle SMs; it saves no memory traffic.
//
// Fills `plan.launch_groups`. Candidates are kernels that do not depend on each other, not even
// indirectly, and that are short, elementwise, or leave SMs idle. A launch group is formed if the
// saved launch overhead, and on a CPU the better use of threads, is at least one launch.
//
// Guarantees:
//
//   - launch groups do not depend on each other cyclically;
//   - peak temporary memory is at most the larger of the peak without launch groups and a size that
//     does not matter: 1 MiB on a CPU (kSmallPeak), the capacity of the L2 cache on a GPU;
//   - the result is deterministic.
//
// Logs one decision per launch group, and one per kernel that is excluded from a launch group and
// per launch group that saves too little.
void FuseHorizontally(ComputationPlan& plan, const Machine& machine, DecisionLog& log);

// For tests: fuses all kernels of the same dependence level, whatever the cost.
void FuseAllHorizontally(ComputationPlan& plan);

}  // namespace tokamak
