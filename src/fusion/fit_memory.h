#pragma once

// Temporary memory of candidate plans, and moves that reduce it until a plan fits.

#include "explain/decision.h"
#include "fusion/candidate_plan.h"
#include "fusion/region_costs.h"

namespace tokamak {

// Peak bytes of temporary arrays of a candidate, in the order in which lowering schedules its
// kernels (unit_graph.h).
int64_t PeakOf(const CandidatePlan& candidate);
// Whether the peak is at most `limit` bytes.
bool FitsMemory(const CandidatePlan& candidate, int64_t limit);

// Applies moves until the temporary arrays fit into `limit` bytes, at any cost in time. Each move
// is the one that lowers the peak most; it stores less, or stores it later. Every move is logged,
// and so is a failure to fit.
void FitMemory(CandidatePlan& candidate, RegionCosts& costs, int64_t limit, DecisionLog& log);

}  // namespace tokamak
