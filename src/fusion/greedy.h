#pragma once

#include "explain/decision.h"
#include "fusion/draft.h"
#include "fusion/plan.h"
#include "fusion/pricer.h"

namespace tokamak {

// Tier 0: makes the move that saves most by estimates, again and again. Moves wait in a queue with
// what they save; only those whose groups change are looked at again. Kernels are built where
// nothing else tells whether there is one, and once for each structure.
void ImproveGreedily(Draft& draft, Pricer& pricer, DecisionLog& log, PlanningFacts& facts);

}  // namespace tokamak
