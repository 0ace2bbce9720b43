#pragma once

#include "cost/machine.h"
#include "kernel/kernel.h"

namespace tokamak {

// Of selects, what is computed for one arm alone goes behind a branch, where it is dear: random
// numbers of which few are taken, series for one range of a function. It is not computed then when
// no lane of a vector and no thread of a warp takes that arm. Values stay as they are.
//
//   s = select(p, f(x), y)   ->   store r = y;  if p { store r = f(x) };  s = read r
//
// Selects of one condition whose operands are known in time share a branch.
void BranchAroundArms(Kernel& kernel, const Machine& machine);

}  // namespace tokamak
