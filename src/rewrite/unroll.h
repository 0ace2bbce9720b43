#pragma once

#include "analysis/loops.h"
#include "rewrite/bodies.h"

namespace tokamak {

// The value that the loop has after `rounds` rounds, each written out after the other at the end of
// the loop's computation. `made` gets what was made, in program order: effects inside want the
// place of the loop (Places). The loop itself stays.
Instr* WriteOutRounds(const WhileLoop& loop, uint64_t rounds, std::vector<Instr*>& made);

// One round does what `factor` rounds did: right only where the number of rounds is a multiple of
// it. The body becomes the loop's own; pointers into it are void.
void UnrollBody(const WhileLoop& loop, uint64_t factor, CallCounts& counts);

}  // namespace tokamak
