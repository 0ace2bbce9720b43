#pragma once

// The search over candidate plans (tier 1), and building the kernels of the plan that it chose.

#include "fusion/candidate_plan.h"
#include "fusion/kernel_memo.h"
#include "fusion/plan.h"
#include "fusion/region_costs.h"

namespace tokamak {

// Predicted microseconds of all kernels of a candidate; builds kernels whose cost is not known.
double EstimateCost(const CandidatePlan& candidate, RegionCosts& costs);

// Tier 1: applies moves while they pay by the cost model of built kernels, the best first. Each
// iteration enumerates the moves of the groups that changed, drops those that cost clearly more by
// estimate, builds the kernels of the others in order of their estimated gain and applies those
// that pay. `budget`: how much kernel IR the search may build (RegionCosts::work_done). It bounds
// the time, and since no clock is involved, the plan is the same on every run. Logs the accepted
// moves with their costs.
void Improve(CandidatePlan& candidate, RegionCosts& costs, int64_t budget, DecisionLog& log,
             PlanningFacts& facts);

// Whether a change is legal: constraints hold, all new regions have kernels and no cycle arises.
// `regions`: the result of CandidatePlan::Try.
bool IsLegal(const Change& change, const std::vector<FusedRegion>& regions,
             CandidatePlan& candidate, RegionCosts& costs);

// For tests: applies random legal moves, whatever they cost, to compare the results of arbitrary
// plans.
void MakeRandomMoves(CandidatePlan& candidate, RegionCosts& costs, int64_t moves_per_group,
                     uint64_t seed);

// Builds the kernels of a candidate. `from`: the plan that the candidate started from, or an empty
// one; kernels of unchanged groups are taken from it.
ComputationPlan BuildCandidate(const CandidatePlan& candidate, KernelMemo& kernels,
                               ComputationPlan from, DecisionLog& log);

}  // namespace tokamak
