#pragma once

#include "cost/machine.h"
#include "explain/decision.h"
#include "fusion/plan.h"

namespace tokamak {

// Fills `plan.packs`: kernels that need nothing of each other, through whatever else, and whose
// launches are worth saving run as one launch. Packs do not wait for each other, and temporary
// memory does not grow by them, but for what is small anyway. The same plan has the same packs. One
// record a pack, and one for each kernel that was left out of one.
void FormPacks(ComputationPlan& plan, const Machine& machine, DecisionLog& log);

// For tests: all kernels of the same depth, whatever they cost.
void PackAll(ComputationPlan& plan);

}  // namespace tokamak
