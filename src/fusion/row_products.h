#pragma once

#include "cost/machine.h"
#include "explain/decision.h"
#include "ir/ir.h"

namespace tokamak {

// On a processor, products of a vector and a matrix become
//
//   reduce(multiply(matrix, broadcast(vector)))
//
// which is read as the matrix lies and fused with what is around it: along its rows where they are
// what is multiplied (as a dot, lanes would hold neighbouring results, whose factors lie a row
// apart: (16,64) and (16,40,64) 57 us against 8), else in columns. Not where they are so large that
// a library is as fast, but those of narrow numbers, which it would want widened in memory.
// Sums are wide, and rounded once, as a dot's. Record contraction.rows.
void FoldRowProducts(Module& module, const Machine& machine, DecisionLog& log);

}  // namespace tokamak
