#pragma once

#include "explain/decision.h"
#include "fusion/candidate_plan.h"
#include "fusion/plan.h"
#include "fusion/region_costs.h"

namespace tokamak {

// Tier 0, the greedy planner: repeatedly applies the move with the largest estimated gain. Moves
// wait in a priority queue; only moves of groups that changed are evaluated again. Costs come from
// instruction counts (summary.h). A kernel is built only if shapes cannot decide whether a
// generator supports a region, and at most once per structure.
void ImproveGreedily(CandidatePlan& candidate, RegionCosts& costs, DecisionLog& log,
                     PlanningFacts& facts);

}  // namespace tokamak
