#pragma once

#include "cost/machine.h"
#include "explain/decision.h"
#include "ir/ir.h"

namespace tokamak {

// What every place of a loop that is one kernel computes for itself, and all alike (keys that are
// split every round, say), is computed once when places are many: by a loop of its own before it,
// which stacks a row for each round.
void ShareRounds(Module& module, DecisionLog& log, const Machine& machine);

}  // namespace tokamak
