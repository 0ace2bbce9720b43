#pragma once

#include "cost/machine.h"
#include "kernel/kernel.h"

namespace tokamak {

// Of vector loops that need less where a flag, one for the whole kernel, is off (or on): one loop
// for each of its values, and a branch.
//
//   for l { store s = select(flag & f(x), y, z) }
//     ->  if flag { for l { store s = select(f(x), y, z) } } else { for l { store s = z } }
void BranchAtFlags(Kernel& kernel, const Machine& machine);

}  // namespace tokamak
