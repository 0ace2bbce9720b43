#pragma once

#include "cost/machine.h"
#include "explain/decision.h"
#include "ir/ir.h"

namespace tokamak {

// On GPUs, a scatter of more than a few windows that meet as a whole or not at all becomes one
// whose windows stand in the order of their places, those of one place in the order that they had:
// what is combined, and in which order, stays the same. The number of each window's place, with its
// own number below, is sorted; updates are fetched in that order where they are combined. Of very
// many windows that may be combined in any order, one place may have all: these are several
// scatters, of stretches of windows and of what is left of each.
void SortScatters(Module& module, DecisionLog& log, const Machine& machine);

}  // namespace tokamak
