#pragma once

#include "cost/machine.h"
#include "explain/decision.h"
#include "ir/ir.h"

namespace tokamak {

// Reductions of what is computed from far smaller arrays (all pairs of points), whose last
// dimension is short (coordinates of a point): each of its elements by name. What folds it is a
// chain of ops, what keeps it several reductions, which share what does not depend on it: then one
// kernel holds all of it, and nothing of the size of the pairs is stored. On GPUs.
void UnrollShortDimensions(Module& module, DecisionLog& log, const Machine& machine);

}  // namespace tokamak
