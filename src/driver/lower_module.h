#pragma once

#include "explain/decision.h"
#include "ir/ir.h"
#include "lower/lower.h"
#include "support/result.h"

namespace tokamak {

// From an optimized module to steps, for the machine of `options`: whoever compiles or explains a
// program goes this way.
Result<LoweredProgram> LowerModule(Module& module, const LowerOptions& options, DecisionLog& log);
// The same for the machine that this process runs on, with its libraries.
Result<LoweredProgram> LowerForHost(Module& module, LowerOptions options, DecisionLog& log);

}  // namespace tokamak
