#pragma once

#include <vector>

#include "cost/work.h"
#include "lower/lower.h"
#include "runtime/steps.h"

namespace tokamak {

// What the kernel of a launch does; what a product does.
Work WorkOf(const RunStep& launch, const LoweredProgram& program, const Machine& machine);

// Sets how many iterations of each launch are worth a thread's while.
void SetGrains(LoweredProgram& program, const Machine& machine);

// Microseconds that a step takes, before anybody has measured it, blocks of it not counted.
double PriceOfStep(const RunStep& step, const LoweredProgram& program, const Machine& machine);
// The same of all steps. Whatever may take any time (a loop) costs a millisecond at least.
double PriceOf(const std::vector<RunStep>& steps, const LoweredProgram& program,
               const Machine& machine);

// Whether it is for the data to say if a run is short or long, so that one run tells nothing of the
// next: a loop whose rounds are not known, a branch that takes long.
bool TimeDependsOnData(const std::vector<RunStep>& steps, const LoweredProgram& program,
                       const Machine& machine);

}  // namespace tokamak
