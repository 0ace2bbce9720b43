#pragma once

#include <vector>

#include "cost/work.h"
#include "lower/lower.h"
#include "runtime/steps.h"

// Cost estimates of lowered steps.

namespace tokamak {

// The work of a kernel launch or of a library call.
Work WorkOf(const RunStep& launch, const LoweredProgram& program, const Machine& machine);

// Sets the minimum number of iterations per thread of each launch (minimum parallel work).
void SetMinChunks(LoweredProgram& program, const Machine& machine);

// Estimated microseconds of a step, without its nested blocks.
double EstimateStep(const RunStep& step, const LoweredProgram& program, const Machine& machine);
// Estimated microseconds of all steps. Data-dependent steps (loops) cost at least a millisecond.
double EstimateCost(const std::vector<RunStep>& steps, const LoweredProgram& program,
                    const Machine& machine);

// Whether the run time is data-dependent, so that one run does not predict the next: a loop with an
// unknown trip count, or an expensive branch.
bool TimeDependsOnData(const std::vector<RunStep>& steps, const LoweredProgram& program,
                       const Machine& machine);

}  // namespace tokamak
