#include "driver/lower_module.h"

#include "driver/check_pins.h"
#include "driver/host_libraries.h"
#include "driver/kernel_codes.h"
#include "fusion/given.h"
#include "gen/library/libraries.h"
#include "passes/passes.h"
#include "runtime/host_memory.h"

namespace tokamak {
namespace {

// As users pin it.
Result<LoweredProgram> LowerPinned(const Module& module, const LowerOptions& options,
                                   DecisionLog& log) {
  if (!options.plan.pinned) return Lower(module, options, log);
  TOK_TRY(Pins pins, Pins::Read(module, options.plan.pin_words));
  if (pins.empty()) return Lower(module, options, log);
  LowerOptions with = options;
  with.plan.pins = &pins;
  TOK_TRY(LoweredProgram program, Lower(module, with, log));
  TOK_RETURN_IF_ERROR(CheckPins(program, module, pins, log));
  return program;
}

Status RunTargetPasses(Module& module, const LowerOptions& options, TargetLibraries* libraries,
                       const PaperOptions& paper, DecisionLog& log) {
  PassTarget target = TargetOf(options.machine, libraries);
  target.is_planned =
      options.plan.mode != FusionMode::kRules && options.plan.mode != FusionMode::kNone;
  target.chunk_iterations = options.chunk_rounds;
  PassContext context(log, {}, {.strict = options.strict, .lifted = paper.lifted}, target);
  PipelineOptions pipeline;
  pipeline.skip = paper.skip;
  TOK_RETURN_IF_ERROR(RunPasses(module, PipelineOf(target.kind), context, pipeline));
  if (options.plan.mode != FusionMode::kRules) return Ok();
  TOK_RETURN_IF_ERROR(RunPasses(module, kPaperPipeline, context, pipeline));
  return Ok();
}

Result<LoweredProgram> LowerPrepared(Module& module, const LowerOptions& options,
                                     DecisionLog& log) {
  if (options.plan.mode != FusionMode::kRules) return LowerPinned(module, options, log);
  GivenFusions given = GivenFusions::Dissolve(module);
  LowerOptions with = options;
  with.plan.given = &given;
  return LowerPinned(module, with, log);
}

}  // namespace

Result<LoweredProgram> LowerModule(Module& module, const LowerOptions& options, DecisionLog& log,
                                   const PaperOptions& paper, TargetLibraries* libraries) {
  TOK_RETURN_IF_ERROR(RunTargetPasses(module, options, libraries, paper, log));
  if (libraries == nullptr) return LowerPrepared(module, options, log);
  LowerOptions with = options;
  with.machine.matrix_library = libraries->are_used();
  return LowerPrepared(module, with, log);
}

Result<LoweredProgram> LowerForHost(Module& module, LowerOptions options, DecisionLog& log,
                                    const PaperOptions& paper) {
  options.machine = HostMachine();
  if (options.plan.memory_limit == 0)
    options.plan.memory_limit = static_cast<int64_t>(HostMemory());
  HostLibraries libraries;
  return LowerModule(module, options, log, paper, &libraries);
}

}  // namespace tokamak
