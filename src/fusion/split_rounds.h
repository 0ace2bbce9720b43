#pragma once

#include "cost/machine.h"
#include "explain/decision.h"
#include "ir/ir.h"

namespace tokamak {

// A loop of known rounds that is one kernel (gen/rounds.h), but would run for longer than anybody
// should wait who wants to stop it, becomes a loop of such loops: each launch does some rounds.
void SplitRounds(Module& module, DecisionLog& log, const Machine& machine);

// Whether a loop was made of loops: its body is the kernel.
bool RunsInChunks(const Instr& loop);

}  // namespace tokamak
