#pragma once

#include "fusion/kernel_cache.h"
#include "fusion/plan.h"

namespace tokamak {

// The baseline planner: fuses producers into consumers by fixed rules, in one pass over the
// instructions from the last to the first. In short:
//
//   - an instruction joins the region of its users if a generator supports that; if its users are
//     in several regions, it joins all of them only if it is cheap to recompute;
//   - a value that must be stored becomes another root of a region that uses it;
//   - a reduction may join a region that reduces the same dimensions of a common input array; an
//     elementwise value may join a region that needs the same expensive value (multi-output
//     siblings).
//
// baseline_regions.h has the conditions. The plan is a starting plan of the search, and the result
// only if the search finds no better one. It is also the plan of FusionMode::kXlaPasses if there
// is no existing partition (PlanOptions::existing_partition). All kernels of the plan are built.
ComputationPlan PlanBaseline(KernelCache& kernel_cache, DecisionLog& log);

// The plan without fusion: one kernel per instruction. All kernels are built.
ComputationPlan PlanUnfused(KernelCache& kernel_cache, DecisionLog& log);

}  // namespace tokamak
