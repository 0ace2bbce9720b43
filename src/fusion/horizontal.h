#pragma once

#include "cost/machine.h"
#include "explain/decision.h"
#include "fusion/plan.h"

namespace tokamak {

// Horizontal fusion: one launch whose grid is the concatenation of the grids of several kernels. It
// saves launches and fills idle SMs; it saves no memory traffic.
//
// Fills `plan.launch_groups`. Candidates are kernels that do not depend on each other, not even
// indirectly, and that are short, elementwise, or leave SMs idle. A launch group is formed if it
// saves at least the overhead of one launch:
//
//   GPU   Each kernel but the first saves a launch, so two kernels are always enough. Better use of
//         idle SMs is not counted. Long kernels whose occupancy would fall below half are left out.
//   CPU   A kernel too short for two threads runs on the calling thread and has no launch to save.
//         Of the other kernels, each but the first saves a launch. Short kernels save time if all
//         kernels together are long enough for several threads.
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
