#pragma once

#include "driver/fusion_options.h"
#include "explain/decision.h"
#include "gen/library/libraries.h"
#include "ir/ir.h"
#include "lower/lower.h"
#include "support/result.h"

namespace tokamak {

// From an optimized module to steps, for the machine of `options`: whoever compiles or explains a
// program goes this way: the passes of its kind of target (rewrite/pipeline.h), the planner, steps.
// `paper`: how the passes of FusionMode::kRules run. `libraries`: what computes dots and
// convolutions; null: as options.machine says.
Result<LoweredProgram> LowerModule(Module& module, const LowerOptions& options, DecisionLog& log,
                                   const PaperOptions& paper = {},
                                   TargetLibraries* libraries = nullptr);
// The same for the machine that this process runs on, with its libraries.
Result<LoweredProgram> LowerForHost(Module& module, LowerOptions options, DecisionLog& log,
                                    const PaperOptions& paper = {});

}  // namespace tokamak
