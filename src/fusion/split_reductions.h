#pragma once

#include "explain/decision.h"
#include "ir/ir.h"

namespace tokamak {

// A long reduction with few results becomes one with more, over parts, and one over those: so that
// there is work for many threads, in a tree that follows from the shape alone. Sums of reals are
// rounded in another order than before.
void SplitReductions(Module& module, DecisionLog& log);

}  // namespace tokamak
