#pragma once

#include "explain/decision.h"
#include "ir/ir.h"

namespace tokamak {

// A loop that multiplies a row of an array, another one in each round, by a matrix that stays (a
// recurrent network's inputs): all rows are multiplied at once before the loop, and a round takes
// its row of the results. Where the row is one part of what is multiplied, next to carried values,
//
//   dot(concatenate(x[i], h), w)  becomes  (dot(x, w's rows of x))[i] + dot(h, w's rows of h)
//
// Columns of such a matrix that make results which nobody looks at are left out before the loop.
// Record loop.product. Loops of known rounds; results up to a GiB.
void HoistProducts(Module& module, DecisionLog& log);

}  // namespace tokamak
