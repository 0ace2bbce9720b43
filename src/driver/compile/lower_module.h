#pragma once

#include <memory>
#include <span>
#include <vector>

#include "driver/compile/compile_options.h"
#include "driver/compile/program_info.h"
#include "driver/compile/target.h"
#include "explain/decision.h"
#include "ir/ir.h"
#include "lower/lower.h"
#include "rewrite/pipeline.h"
#include "support/result.h"

// The two halves of a compilation for a target: target passes, then planning and lowering. Compile
// is the only caller.

namespace tokamak {

class CompileExtensions;  // driver/plugins/compile_extensions.h

// Iterations per launch of a whole-loop kernel with CompileOptions::short_chunks. Chosen: small
// enough that tests with short loops launch several times.
inline constexpr int64_t kShortChunk = 3;

struct TargetPassRuns {
  std::vector<PassRun> runs;
  FusionTags fusion_tags;  // FusionMode::kXlaPasses only
};

// Runs the target's pipeline, and the passes of FusionMode::kXlaPasses, on an optimized module.
// Sets in the target's machine whether the program calls a library.
// `extensions` may be null; its passes may replace the module.
Result<TargetPassRuns> RunTargetPasses(std::unique_ptr<Module>& module, Target& target,
                                       const CompileOptions& options, DecisionLog& log,
                                       CompileExtensions* extensions);

// RunPasses, with the passes of plugins.
Result<std::vector<PassRun>> RunWithPlugins(std::unique_ptr<Module>& module,
                                            std::span<const Step> steps, PassContext& context,
                                            const PipelineOptions& pipeline,
                                            CompileExtensions* extensions);

// Plans and lowers the module that RunTargetPasses produced.
struct LowerInputs {
  const std::vector<ParameterInfo>& parameters;
  const FusionTags& tags;
  const PlannerExtensions* extensions;  // may be null
};
Result<LoweredProgram> LowerModule(const Module& module, const Target& target,
                                   const CompileOptions& options, const LowerInputs& inputs,
                                   DecisionLog& log);

}  // namespace tokamak
