#pragma once

#include "gen/top_k_schedule.h"
#include "ir/ir.h"
#include "rewrite/pass.h"

namespace tokamak {

// A top-k on GPUs becomes reductions or sorts, as its schedule says (gen/top_k_schedule.h). Returns
// false if the top-k has no plain operand.
bool TryLowerTopK(Instr& top, PassContext& context);
// The same with a schedule, for tests. The operand must be plain, and of a type that fits into
// words with indices.
void LowerTopK(Instr& top, const TopKSchedule& schedule, PassContext& context);

}  // namespace tokamak
