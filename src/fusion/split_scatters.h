#pragma once

#include "cost/machine.h"
#include "explain/decision.h"
#include "ir/ir.h"

namespace tokamak {

// A scatter of many updates into an array of few elements, in any order, becomes one of several
// parts of the updates, each into an array of its own, and a reduction of those: so that there is
// work for many threads, whose values follow from the shape alone. Sums of reals are rounded in
// another order than before.
void SplitScatters(Module& module, DecisionLog& log, const Machine& machine);

}  // namespace tokamak
