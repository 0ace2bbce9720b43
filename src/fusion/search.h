#pragma once

#include "fusion/plan.h"

namespace tokamak {

// A plan that is priced no higher than the one given: moves are made while they pay. `probes`: how
// many kernels may be built to find their price, which bounds the time that it takes and is the
// same on every machine. What was taken and refused is in the log, with prices.
ComputationPlan ImprovePlan(ComputationPlan plan, const Machine& machine, int64_t probes,
                            DecisionLog& log);

}  // namespace tokamak
