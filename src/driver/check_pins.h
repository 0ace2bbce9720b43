#pragma once

#include "explain/decision.h"
#include "fusion/pins.h"
#include "lower/lower.h"
#include "support/result.h"

namespace tokamak {

// TK6107 for the first require_fused that does not hold: what is in which kernel, by which rule it
// was refused, and for which lines of the user's program.
Status CheckPins(const LoweredProgram& program, const Module& module, const Pins& pins,
                 const DecisionLog& log);

}  // namespace tokamak
