#pragma once

// Enforces the user's fusion constraints (pins.h) on a candidate plan.

#include "explain/decision.h"
#include "fusion/candidate_plan.h"
#include "fusion/pins.h"
#include "fusion/region_costs.h"

namespace tokamak {

// Changes a candidate until its constraints hold: a never_fuse instruction gets its own kernel, so
// its operands and its result are stored; the instructions of a fuse or require_fused constraint
// become one kernel if a generator supports it. The candidate keeps the constraints, and later
// moves respect them. A constraint that cannot be met is logged as fusion.pin.
void HoldPins(CandidatePlan& candidate, RegionCosts& costs, const Pins* pins, DecisionLog& log);

// Why a change would break a constraint that holds in the candidate; empty if it breaks none.
// `regions`: the result of CandidatePlan::Try for the change.
std::string WhyPinned(const CandidatePlan& candidate, const Change& change,
                      const std::vector<FusedRegion>& regions);

}  // namespace tokamak
