#pragma once

#include "driver/compile/target.h"
#include "explain/decision.h"
#include "lower/lower.h"

namespace tokamak {

// Adapts lowered steps to a GPU: chooses which calls and host steps become device library calls,
// and which copies before a persistent loop are eliminated. Requires steps whose loops are already
// double-buffered (lower/alternate.h).
void FitToDevice(LoweredProgram& program, const Target& target, DecisionLog& log);

}  // namespace tokamak
