#pragma once

// The search over candidate plans (tier 1), and building the kernels of the plan that it chose.

#include <limits>

#include "fusion/candidate_plan.h"
#include "fusion/kernel_cache.h"
#include "fusion/move_policy.h"
#include "fusion/plan.h"
#include "fusion/region_costs.h"

namespace tokamak {

// The search discards a move without building kernels if the estimate of the new groups exceeds
// this multiple of the estimate of the old ones. Hand-tuned: a margin for the error of estimates.
inline constexpr double kMaxEstimateRatio = 1.1;

// The objective (plan.h): the sum of the modeled costs of all groups, in microseconds. Builds
// kernels whose cost is not known. A group without a kernel counts 1e9 microseconds. If the sum
// exceeds `enough_us`, the result is a lower bound that exceeds it too; further kernels are not
// built.
double ModeledCost(const CandidatePlan& candidate, RegionCosts& costs,
                   double enough_us = std::numeric_limits<double>::infinity());

// Whether a move that makes kernels independent is credited with a launch, which horizontal fusion
// of a GPU can then save. With credits, the plan may become costlier.
enum class LaunchCredit : uint8_t { kNo, kYes };

// Tier 1 for one starting plan. Hill climbing: it only applies moves that are worthwhile by modeled
// costs (EvaluatedMove::IsWorthwhile), so the plan does not become costlier, except by credits.
// PlanComputation runs the search from up to three starting plans.
//
// Each iteration
//
//   1. enumerates the moves of the groups that changed, at first of all groups;
//   2. discards those that were rejected before, that break a constraint, or whose estimate is too
//      high (kMaxEstimateRatio);
//   3. builds the kernels of the others, in order of their estimated gain, and applies the
//      worthwhile ones, best first. With more than 500 moves, each is applied as soon as it is
//      known to be worthwhile.
//
// It stops at a local optimum, when an iteration has changed no group; or when
// `build_effort_budget` is spent, in kernel IR values (RegionCosts::build_effort); or, as a
// backstop, after 64 iterations. No clock is involved, so the plan is the same on every run. Logs
// the accepted moves with their costs, and the reasons why values are still stored.
struct SearchOptions {
  int64_t build_effort_budget = 0;
  LaunchCredit credit = LaunchCredit::kNo;
  MovePolicy* policy = nullptr;  // may be null
};
void ImproveBySearch(CandidatePlan& candidate, RegionCosts& costs, const SearchOptions& options,
                     DecisionLog& log, PlanningStats& stats);

// Whether a change is legal: constraints hold, all new regions have kernels and no cycle arises.
// `regions`: the result of CandidatePlan::RegionsAfter.
bool IsLegal(const Change& change, const std::vector<FusedRegion>& regions,
             CandidatePlan& candidate, RegionCosts& costs);

// For tests: applies random legal moves, whatever they cost, so that tests can check that any plan
// computes the same values.
void MakeRandomMoves(CandidatePlan& candidate, RegionCosts& costs, int64_t moves_per_group,
                     uint64_t seed);

// Builds the kernels of a candidate. `base_plan`: the plan that the candidate started from, or an
// empty one; kernels of unchanged groups are taken from it.
ComputationPlan BuildCandidate(const CandidatePlan& candidate, KernelCache& kernel_cache,
                               const ComputationPlan& base_plan, DecisionLog& log);

}  // namespace tokamak
