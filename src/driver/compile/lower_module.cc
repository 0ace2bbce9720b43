#include "driver/compile/lower_module.h"

#include <optional>

#include "driver/compile/check_constraints.h"
#include "driver/compile/check_schedules.h"
#include "driver/compile/target_libraries.h"
#include "driver/plugins/compile_extensions.h"
#include "fusion/serialized_plan.h"
#include "passes/passes.h"
#include "xla_rules/partition.h"

namespace tokamak {
namespace {

// Lowers with the user's fusion constraints.
Result<LoweredProgram> LowerWithConstraints(const Module& module, const LowerOptions& options,
                                            DecisionLog& log) {
  TOK_TRY(FusionConstraints constraints,
          FusionConstraints::Read(module, options.plan.constraint_options));
  if (constraints.empty()) return Lower(module, options, log);
  LowerOptions with = options;
  with.plan.constraints = &constraints;
  TOK_TRY(LoweredProgram program, Lower(module, with, log));
  TOK_RETURN_IF_ERROR(CheckConstraints(program, module, constraints, log));
  return program;
}

// Lowers with the plan of the options, if there is one.
Result<LoweredProgram> LowerAsPlanned(const Module& module, LowerOptions lower,
                                      const CompileOptions& options, DecisionLog& log) {
  if (!options.apply_constraints) return Lower(module, lower, log);
  if (options.plan == nullptr) return LowerWithConstraints(module, lower, log);
  TOK_TRY(ModulePartition partition, PartitionsOf(*options.plan, module));
  lower.plan.existing_partition = &partition;
  lower.plan.constrain_existing = false;
  return LowerWithConstraints(module, lower, log);
}

LowerOptions LowerOptionsOf(const Target& target, const CompileOptions& options,
                            const std::vector<ParameterInfo>& parameters) {
  LowerOptions lower;
  lower.machine = target.machine;
  for (const ParameterInfo& parameter : parameters)
    lower.alias_results.push_back(parameter.alias_result);
  lower.strict = options.strict;
  lower.poison = options.check_memory;
  lower.persistent = options.persistent;
  lower.plan.mode = options.fusion;
  lower.plan.effort = options.effort;
  lower.plan.constraint_options = options.constraints;
  lower.plan.schedules = options.schedules;
  if (!options.apply_constraints) lower.plan.schedules.forced.clear();
  lower.plan.memory_limit = options.memory_limit > 0 ? options.memory_limit : target.memory_bytes;
  // A GPU program is often launch-bound. Checked programs launch kernels individually.
  lower.plan.horizontal =
      options.horizontal.value_or(target.is_gpu() ? HorizontalMode::kAuto : HorizontalMode::kNone);
  if (options.check_kernels && target.device != nullptr)
    lower.plan.horizontal = HorizontalMode::kNone;
  return lower;
}

}  // namespace

Result<std::vector<PassRun>> RunWithPlugins(std::unique_ptr<Module>& module,
                                            std::span<const Step> steps, PassContext& context,
                                            const PipelineOptions& pipeline,
                                            CompileExtensions* extensions) {
  if (extensions == nullptr) return RunPasses(*module, steps, context, pipeline);
  return extensions->RunPasses(module, steps, context, pipeline);
}

Result<TargetPassRuns> RunTargetPasses(std::unique_ptr<Module>& module, Target& target,
                                       const CompileOptions& options, DecisionLog& log,
                                       CompileExtensions* extensions) {
  std::unique_ptr<TargetLibraries> libraries = LibrariesOf(target);
  PassTarget rewritten_for = TargetOf(target.machine, libraries.get());
  rewritten_for.is_planned =
      options.fusion != FusionMode::kXlaPasses && options.fusion != FusionMode::kNone;
  rewritten_for.chunk_iterations = options.short_chunks ? kShortChunk : 0;
  PassContext context(log, {}, {.strict = options.strict, .lifted = options.lifted}, rewritten_for);
  PipelineOptions pipeline;
  pipeline.skip = options.skip_passes;
  TargetPassRuns done;
  TOK_TRY(done.runs,
          RunWithPlugins(module, PipelineOf(rewritten_for.kind), context, pipeline, extensions));
  if (libraries != nullptr) target.machine.uses_library = libraries->uses_library();
  if (options.fusion != FusionMode::kXlaPasses) return done;
  if (options.fusion_tags != nullptr) {
    done.fusion_tags = options.fusion_tags(*module);
    return done;
  }
  for (std::span<const Step> steps : {std::span<const Step>(kPaperPipeline), {kFusedPipeline}}) {
    TOK_TRY(std::vector<PassRun> runs, RunPasses(*module, steps, context, pipeline));
    done.runs.insert(done.runs.end(), runs.begin(), runs.end());
  }
  done.fusion_tags = std::move(context.fusion_tags);
  return done;
}

Result<LoweredProgram> LowerModule(const Module& module, const Target& target,
                                   const CompileOptions& options, const LowerInputs& inputs,
                                   DecisionLog& log) {
  LowerOptions lower = LowerOptionsOf(target, options, inputs.parameters);
  lower.plan.extensions = inputs.extensions;
  std::optional<ModulePartition> fusions;
  if (options.fusion == FusionMode::kXlaPasses) {
    fusions = PartitionOfFusions(module, inputs.tags, lower.machine);
    lower.plan.existing_partition = &*fusions;
    lower.plan.constrain_existing = true;
  }
  TOK_TRY(LoweredProgram program, LowerAsPlanned(module, lower, options, log));
  TOK_RETURN_IF_ERROR(CheckSchedules(program, lower.plan.schedules, target.machine));
  return program;
}

}  // namespace tokamak
