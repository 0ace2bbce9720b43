#pragma once

#include "explain/decision.h"
#include "ir/ir.h"

namespace tokamak {

// Convolutions become products of matrices: what each place of the window sees is gathered into the
// columns of one matrix, the kernel is the other; or, with one output feature a group, sums of
// products. Those whose matrix would be stored and too large, and those of no elements, stay.
void ExpandConvolutions(Module& module, DecisionLog& log);

}  // namespace tokamak
