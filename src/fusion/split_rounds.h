#pragma once

#include "cost/machine.h"
#include "explain/decision.h"
#include "ir/ir.h"

namespace tokamak {

// A loop that is one kernel (gen/rounds.h), but would run for longer than anybody should wait who
// wants to stop it, becomes a loop of such loops: each launch does some rounds. So does one on a
// GPU whose rounds are not known, where it stands in no other loop. `rounds`: of a launch; 0: as
// many as take a while, by price.
void SplitRounds(Module& module, DecisionLog& log, const Machine& machine, int64_t rounds = 0);

// Whether a loop was made of loops: its body is the kernel, which looks at the condition itself.
bool RunsInChunks(const Instr& loop);

}  // namespace tokamak
