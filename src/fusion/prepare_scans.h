#pragma once

#include "cost/machine.h"
#include "explain/decision.h"
#include "ir/ir.h"

namespace tokamak {

// Windows that are cumulative (all elements up to their own, or all from it on) become scans,
// whatever they compute; those whose bits stay the same are scans before (passes).
//
// A long scan of few rows is taken apart into parts: their totals, a scan of those, and a scan of
// each part that begins with what came before it. Parts follow from the shape and the kind of
// machine alone.
void PrepareScans(Module& module, DecisionLog& log, const Machine& machine);

}  // namespace tokamak
