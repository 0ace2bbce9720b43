#pragma once

#include <vector>

#include "cost/reuse.h"
#include "kernel/variance.h"

namespace tokamak {

// How the elements lie that the threads of a GPU's team touch at one place of a kernel.
struct Spread {
  double step = 0;  // elements between neighbouring threads; 0: not known, or the same one
  double run = 0;   // elements side by side that all rounds of the team touch; 0: not known
};

// `loops`: those around the place, outermost first.
Spread SpreadOf(const Kernel& kernel, ValueId index, const std::vector<ArrayAccess::Around>& loops,
                const Variance& variance);

}  // namespace tokamak
