#pragma once

#include "explain/decision.h"
#include "fusion/constraints.h"
#include "lower/lower.h"
#include "support/result.h"

namespace tokamak {

// Returns TK6107 for the first violated require_fused constraint. The error says which kernel holds
// each instruction, which rule rejected the fusion, and the source lines involved.
Status CheckConstraints(const LoweredProgram& program, const Module& module,
                        const FusionConstraints& constraints, const DecisionLog& log);

}  // namespace tokamak
