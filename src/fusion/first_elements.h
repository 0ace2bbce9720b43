#pragma once

#include "explain/decision.h"
#include "ir/ir.h"

namespace tokamak {

// A sort of which only the first elements are needed becomes a top-k. No: it is none.
bool TryTopK(Instr& sort, DecisionLog& log);

// A call of ApproxTopK becomes a sort and slices of it: exact, which is the best approximation.
bool TryApproxTopK(Instr& call, DecisionLog& log);

}  // namespace tokamak
