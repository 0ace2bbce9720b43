#pragma once

#include <vector>

#include "driver/compile_options.h"
#include "driver/executable.h"
#include "driver/target.h"
#include "explain/decision.h"
#include "ir/ir.h"
#include "lower/lower.h"
#include "rewrite/pipeline.h"
#include "support/result.h"

// The two halves of a compilation for a target. Compile is the only caller.

namespace tokamak {

// Iterations of a loop kernel's launch where CompileOptions::short_chunks asks for few.
inline constexpr int64_t kShortChunk = 3;

struct TargetPassRuns {
  std::vector<PassRun> runs;
  FusionTags fusion_tags;  // of FusionMode::kRules
};

// Rewrites an optimized module for a target: its pipeline, and the passes of FusionMode::kRules.
// The target's machine is told whether the program calls a library.
Result<TargetPassRuns> RunTargetPasses(Module& module, Target& target,
                                       const CompileOptions& options, DecisionLog& log);

// Plans and lowers what those passes left.
Result<LoweredProgram> LowerModule(const Module& module, const Target& target,
                                   const CompileOptions& options,
                                   const std::vector<ParameterInfo>& parameters,
                                   const FusionTags& tags, DecisionLog& log);

}  // namespace tokamak
