#pragma once

#include "explain/decision.h"
#include "ir/ir.h"

namespace tokamak {

// A loop that adds a product to a carried sum in every round, and does not look at the sum (a
// gradient's, of weights): factors of all rounds are stacked, and multiplied at once after the
// loop.
//
//   sum += dot(a, x[i])  over all i   becomes   sum += dot(all a, x), rounds and depth as one depth
//
// The same of sums over dimensions of what is stacked anyway. Record loop.sum. Loops of known
// rounds, where stacking moves no more than adding does.
void SinkSums(Module& module, DecisionLog& log);

}  // namespace tokamak
