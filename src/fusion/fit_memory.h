#pragma once

// The temporary memory of candidate plans, and moves that reduce it to a limit.

#include "explain/decision.h"
#include "fusion/candidate_plan.h"
#include "fusion/region_costs.h"

namespace tokamak {

// Peak bytes of the temporary arrays of a candidate, in the order in which lowering schedules its
// kernels (unit_graph.h).
int64_t PeakTemporaryBytes(const CandidatePlan& candidate);
// Whether that peak is at most `limit_bytes`.
bool FitsMemory(const CandidatePlan& candidate, int64_t limit_bytes);

// Applies moves until the temporary arrays fit into `limit_bytes`, even if the program becomes
// slower. Each iteration tries the legal moves (moves.h) of the groups that keep the most bytes
// alive at the peak, and applies the one that lowers the peak most: such a move stores fewer bytes,
// or stores a value later. Stops when the plan fits, when no tried move lowers the peak, or after
// 64 moves. Logs every move, and a failure to fit as fusion.memory.
void FitMemory(CandidatePlan& candidate, RegionCosts& costs, int64_t limit_bytes, DecisionLog& log);

}  // namespace tokamak
