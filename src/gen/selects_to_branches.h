#pragma once

#include "cost/machine.h"
#include "kernel/kernel.h"

// Select-to-branch conversion on kernel IR.

namespace tokamak {

// Moves expensive code that only one operand of a select uses behind a branch: random numbers that
// are rarely used, the series for one range of a special function. The code is skipped when no lane
// of a vector, or no thread of a warp, needs it. Results do not change.
//
//   s = select(p, f(x), y)   ->   store r = y;  if p { store r = f(x) };  s = read r
//
// Selects with the same condition share a branch if their operands are available there.
void ConvertSelectsToBranches(Kernel& kernel, const Machine& machine);

}  // namespace tokamak
