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
// apart: (16,64) and (16,40,64) 57 us against 8), else in columns. A library is slower (matrix by
// vector and vector by matrix, Neoverse V1, two threads: 128 x 128 1.1 and 1.0 us against 1.9, 2048
// x 2048 220 and 280 against 236 and 1042; Emerald Rapids, 16: 24 and 46 against 102 and 158), and
// would want narrow numbers widened in memory.
// Sums are wide, and rounded once, as a dot's. Record contraction.rows.
void FoldRowProducts(Module& module, const Machine& machine, DecisionLog& log);

}  // namespace tokamak
