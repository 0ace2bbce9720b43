#pragma once

#include "driver/target.h"
#include "explain/decision.h"
#include "lower/lower.h"

namespace tokamak {

// Decides what a GPU does otherwise than the steps say: which calls and host steps are a library's
// of the device, and which copies before a loop that is one launch are left out. For steps whose
// loops alternate (lower/alternate.h).
void FitToDevice(LoweredProgram& program, const Target& target, DecisionLog& log);

}  // namespace tokamak
