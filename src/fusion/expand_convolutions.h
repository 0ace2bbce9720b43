#pragma once

#include "cost/machine.h"
#include "explain/decision.h"
#include "ir/ir.h"

namespace tokamak {

// Convolutions become products of matrices: what each place of the window sees is gathered into the
// columns of one matrix, the kernel is the other; or, with one output feature a group, sums of
// products. Those whose matrix would be stored and too large, those of no
// elements, and those that the machine's library computes, stay.
void ExpandConvolutions(Module& module, const Machine& machine, DecisionLog& log);

}  // namespace tokamak
