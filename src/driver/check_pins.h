#pragma once

#include "explain/decision.h"
#include "fusion/pins.h"
#include "lower/lower.h"
#include "support/result.h"

namespace tokamak {

// Returns TK6107 for the first violated require_fused constraint. The error says which kernel holds
// each instruction, which rule rejected the fusion, and the source lines involved.
Status CheckPins(const LoweredProgram& program, const Module& module, const Pins& pins,
                 const DecisionLog& log);

}  // namespace tokamak
