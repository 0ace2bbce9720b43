#pragma once

#include "cost/machine.h"
#include "kernel/kernel.h"

// Loop unswitching on kernel IR.

namespace tokamak {

// Clones a vector loop that has less work when a condition that is uniform over the kernel is false
// (or true): one version per value of the condition, and a branch around them.
//
//   for l { store s = select(flag & f(x), y, z) }
//     ->  if flag { for l { store s = select(f(x), y, z) } } else { for l { store s = z } }
void UnswitchLoops(Kernel& kernel, const Machine& machine);

}  // namespace tokamak
