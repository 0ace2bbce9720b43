#pragma once

#include <optional>
#include <vector>

#include "cost/machine.h"
#include "gen/sort_keys.h"
#include "ir/ir.h"

// Sorts that a runtime function computes on CPUs, and the CPU's choice of runtime functions.

namespace tokamak {

// Whether a function of the CPU runtime computes this instruction: a sort by keys (unless a sorting
// network is faster), top-k, a scatter with UsesRuntimeScatter (scatter.h), or one with
// HasRuntimeFunction (functions.h). False on GPUs.
bool UsesRuntimeFunction(const Instr& instr, const Machine& machine);

}  // namespace tokamak
