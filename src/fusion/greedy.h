#pragma once

#include "explain/decision.h"
#include "fusion/candidate_plan.h"
#include "fusion/move_policy.h"
#include "fusion/plan.h"
#include "fusion/region_costs.h"

namespace tokamak {

// The greedy planner, tier 0: applies the moves with the largest estimated gain, by estimates alone
// (region_work.h). Tier 1 is the search, which uses modeled costs (search.h). PlanComputation
// starts the greedy planner from the initial candidate (second constructor of CandidatePlan, with
// `inline_single_use`), on which the user's constraints have been enforced.
//
// The greedy planner alternates between two phases. The first evaluates the moves of each stored
// value (MovesOfValue, moves.h): all worthwhile moves (EvaluatedMove::IsWorthwhile) wait in a
// priority queue and are applied in order of their gain; then the values around the changed groups
// are evaluated again, until no move is left. The second phase adds the moves of pairs of groups
// (PairMovesOf) for all groups that are new since the last time; then the first phase continues. It
// stops when neither phase has a worthwhile move, or after 8 moves per initial group, a limit that
// only guards against endless improvement.
//
// A kernel is built only if the shape checks of RegionCosts::AllHaveReliablyEstimatedKernels are
// inconclusive, and at most once per region structure. `policy` may be null.
void ImproveGreedily(CandidatePlan& candidate, RegionCosts& costs, DecisionLog& log,
                     PlanningStats& stats, MovePolicy* policy = nullptr);

}  // namespace tokamak
