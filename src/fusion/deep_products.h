#pragma once

#include "cost/machine.h"
#include "explain/decision.h"
#include "ir/ir.h"

namespace tokamak {

// On a GPU, products of few results and much depth (dots of long vectors, a few rows by a few rows,
// x^T x of many samples with few features) become a sum of products for each result:
//
//   reduce(multiply(row i of lhs, row j of rhs))
//
// One kernel folds all of them, each thread with all sums in registers, so that what is multiplied
// is read once; SplitReductions cuts it into parts. Tiles of results would be almost empty, and too
// few for the machine (2 x 2 by 4,194,304 deep: 450 us by cuBLASLt, and the bytes are read in 15).
// Sums are wide, and rounded once, as a dot's. Record contraction.deep.
void FoldDeepProducts(Module& module, const Machine& machine, DecisionLog& log);

}  // namespace tokamak
