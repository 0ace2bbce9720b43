#pragma once

#include "cost/machine.h"
#include "explain/decision.h"
#include "ir/ir.h"

namespace tokamak {

// On a GPU, sums of exp(x - m) along a few long rows, m being their greatest element, become sums
// of parts that need not wait for m, and are read once:
//
//   m_p = max of part p of a row,   s_p = sum of exp(x - m_p) over it
//   m   = max of m_p,               s   = sum of s_p exp(m_p - m)
//
// Rounded in another order than before; infinities and NaN come out as they did. Before
// SplitReductions, which would split both reductions, one after the other. Record reduce.shifted.
void SplitShiftedSums(Module& module, DecisionLog& log, const Machine& machine);

}  // namespace tokamak
