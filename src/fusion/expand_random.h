#pragma once

#include "explain/decision.h"
#include "ir/ir.h"

namespace tokamak {

// A rng-bit-generator becomes the next state, in plain ops, and one that gives the bits alone (an
// array): an element of those has code, so that they are computed where they are needed.
void ExpandRandom(Module& module, DecisionLog& log);

}  // namespace tokamak
