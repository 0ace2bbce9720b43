#pragma once

// Enforces the user's fusion constraints (constraints.h) on a candidate plan.

#include "explain/decision.h"
#include "fusion/candidate_plan.h"
#include "fusion/constraints.h"
#include "fusion/region_costs.h"

namespace tokamak {

// Changes a candidate until its constraints hold:
//
//   never_fuse            the instruction gets its own kernel, so its operands and its result are
//                         stored, except those that are free to recompute (IsFreeToRecompute)
//   fuse, require_fused   one kernel computes all of the instructions, possibly with others, if a
//                         generator supports it and no cycle arises
//
// The candidate keeps the constraints, and later moves respect them. A constraint that cannot be
// met is logged as fusion.pin. That is all for `fuse`; for `require_fused`, CheckConstraints
// (driver/compile/check_constraints.h) then fails the compilation with the logged reason.
// `constraints` may be null.
void EnforceConstraints(CandidatePlan& candidate, RegionCosts& costs,
                        const FusionConstraints* constraints, DecisionLog& log);

// Why a change would break a constraint that holds in the candidate; empty if it breaks none.
// `regions`: the result of CandidatePlan::RegionsAfter for the change.
std::string WhyConstraintBroken(const CandidatePlan& candidate, const Change& change,
                                const std::vector<FusedRegion>& regions);

}  // namespace tokamak
