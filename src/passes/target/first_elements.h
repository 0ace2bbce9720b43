#pragma once

#include "ir/ir.h"
#include "rewrite/pass.h"

namespace tokamak {

// A sort of which only the first elements are needed becomes a top-k. No: it is none.
bool TryTopK(Instr& sort, PassContext& context);

// A call of ApproxTopK becomes a sort and slices of it: exact, which is the best approximation.
bool TryApproxTopK(Instr& call, PassContext& context);

}  // namespace tokamak
