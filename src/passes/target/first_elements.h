#pragma once

#include "ir/ir.h"
#include "rewrite/pass.h"

namespace tokamak {

// Top-k recognition. A sort whose consumers use only the first elements becomes a top-k. Returns
// false if it is not such a sort.
bool TryTopK(Instr& sort, PassContext& context);

// A call of ApproxTopK becomes a sort and slices of it: exact, which satisfies any recall target.
bool TryApproxTopK(Instr& call, PassContext& context);

}  // namespace tokamak
