#pragma once

#include "cost/machine.h"
#include "explain/decision.h"
#include "ir/ir.h"

namespace tokamak {

// On a processor, small products of a vector and a matrix whose rows are what is multiplied become
//
//   reduce(multiply(matrix, broadcast(vector)))
//
// which is read along the rows and fused with what is around it; as a dot, lanes would hold
// neighbouring results, whose factors lie a row apart ((16,64) and (16,40,64): 57 us against 8).
// Large ones of narrow numbers, too, which a library would want widened in memory.
// Sums are wide, and rounded once, as a dot's. Record contraction.rows.
void FoldRowProducts(Module& module, const Machine& machine, DecisionLog& log);

}  // namespace tokamak
