#pragma once

#include "ir/ir.h"
#include "rewrite/pass.h"

namespace tokamak {

// A top-k with a small k becomes k reductions, each of which finds the first element after the
// previous one. Unlike a sort they are row reductions, which fuse with what computes the row.
// Returns false if the top-k does not qualify.
bool TryReduceTopK(Instr& top, PassContext& context);

}  // namespace tokamak
