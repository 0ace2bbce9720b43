// The compile driver: one call from a module to program steps (docs/architecture.md, stages 3 to
// 13).
//
//   verify -> passes of all targets -> target passes -> lower and plan -> steps
//
// A Compilation is immutable once returned. A program that cannot be lowered is interpreted as a
// whole (why_interpreted). Recompile makes a new Compilation from a copy of an optimized module,
// after a device rejected a form of code; its log records why.

#include <chrono>
#include <optional>

#include "driver/compile/all_kernels.h"
#include "driver/compile/compilation.h"
#include "driver/compile/device_program.h"
#include "driver/compile/interpreted.h"
#include "driver/compile/lower_module.h"
#include "driver/compile/program_facts.h"
#include "driver/compile/step_cost.h"
#include "driver/compile/user_rules.h"
#include "driver/plugins/compile_extensions.h"
#include "interp/interp.h"
#include "ir/clone.h"
#include "ir/infer.h"
#include "lower/alternate.h"
#include "passes/passes.h"

namespace tokamak {
namespace {

using Clock = std::chrono::steady_clock;

double MillisSince(Clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

Status Verify(const Module& module) {
  Status verified = VerifyModule(module);
  if (!verified.ok()) AddOrigin(verified.error(), module);
  return verified;
}

// The plugins and policies of this compilation; null if there are none.
Result<std::shared_ptr<CompileExtensions>> ExtensionsFor(const Target& target,
                                                         const CompileOptions& options) {
  TOK_RETURN_IF_ERROR(LoadPluginsOfEnvironment());
  PluginMode mode = CurrentPluginMode();
  mode.strict |= options.strict_plugins;
  mode.check |= options.check_plugins;
  return MakeExtensions(mode, target.is_gpu() ? kGpu : kCpu, target.machine);
}

// Runs the requested passes on a verified module.
Status Optimize(Compilation& made) {
  const CompileOptions& options = made.options;
  AttachConstraints(*made.module, options.constraints);
  PipelineOptions pipeline;
  pipeline.skip = options.skip_passes;
  std::vector<Value> added;
  std::optional<RuleSession> rules = RuleSession::Of(made.target, options);
  PassContext context(made.log, {},
                      {.strict = options.strict,
                       .added = options.hoist ? &added : nullptr,
                       .user_rules = rules ? &*rules : nullptr});
  for (std::span<const Step> steps :
       {std::span<const Step>(kHoistPipeline), {kEntryPipeline}, {options.passes}}) {
    TOK_TRY(std::vector<PassRun> runs,
            RunWithPlugins(made.module, steps, context, pipeline, made.extensions.get()));
    made.pass_runs.insert(made.pass_runs.end(), runs.begin(), runs.end());
  }
  for (const Value& value : added) AddLeaves(value, made.hoisted);
  return Ok();
}

// Fills in the properties that do not depend on the steps.
Status Describe(Compilation& made) {
  const Module& module = *made.module;
  int64_t devices = made.target.mesh.devices();
  if (!made.why_interpreted.empty())
    TOK_RETURN_IF_ERROR(CheckInterpreted(module, made.target.mesh));
  TOK_TRY(made.parameters, ParametersOf(module, devices));
  TOK_TRY(made.results, ResultsOf(module, devices));
  MatchDonors(made.parameters, made.results);
  made.cost = CostOf(module);
  made.calls_host = CallsHost(module);
  return Ok();
}

// Why the interpreter has to run the whole program; empty if it can be lowered.
Result<std::string> WhyInterpreted(Compilation& made) {
  if (made.target.kernel_backend == KernelBackend::kInterpreter)
    return std::string("the backend is interp");
  std::string why = made.target.mesh.devices() > 1 ? "the program runs on several devices"
                                                   : WhyNotLowered(*made.module);
  if (why.empty()) return why;
  if (made.options.require_kernels)
    return MakeError(ErrorCode::kNoKernel,
                     "compile: kernels are required, but the whole program is interpreted: " + why,
                     {.file = made.module->file});
  made.log.Add({.pass = "lower",
                .rule = "host.program",
                .subject = made.module->name(),
                .because = "the whole program is interpreted: " + why});
  return why;
}

// Lowers the optimized module to the steps that run.
Status MakeSteps(Compilation& made) {
  Clock::time_point begin = Clock::now();
  LowerInputs inputs{made.parameters, made.fusion_tags, made.extensions.get()};
  TOK_TRY(made.program, LowerModule(*made.module, made.target, made.options, inputs, made.log));
  made.times.lowering_ms = MillisSince(begin);
  if (made.extensions != nullptr) {
    made.extensions->LogTo(made.log);
    TOK_RETURN_IF_ERROR(made.extensions->status());
  }
  const Machine& machine = made.target.machine;
  if (made.target.kernel_backend == KernelBackend::kMachineCode)
    SetMinChunks(made.program, machine);
  made.predicted_us = EstimateCost(made.program.steps, made.program, machine);
  made.time_depends_on_data = TimeDependsOnData(made.program.steps, made.program, machine);
  AlternateLoops(made.program.steps);
  // Checked programs run step by step, on the host where possible.
  if (made.target.kernel_backend == KernelBackend::kCuda && !made.options.check_kernels)
    FitToDevice(made.program, made.target, made.log);
  NumberSteps(made.program.steps);
  if (made.options.require_kernels)
    TOK_RETURN_IF_ERROR(CheckAllKernels(made.program, *made.module));
  made.memory = MemoryOf(made.parameters, made.results, made.program.arena_bytes);
  return Ok();
}

Status MakeProgram(Compilation& made) {
  Clock::time_point begin = Clock::now();
  TOK_TRY(TargetPassRuns done,
          RunTargetPasses(made.module, made.target, made.options, made.log, made.extensions.get()));
  made.times.target_passes_ms = MillisSince(begin);
  made.pass_runs.insert(made.pass_runs.end(), done.runs.begin(), done.runs.end());
  made.fusion_tags = std::move(done.fusion_tags);
  TOK_RETURN_IF_ERROR(MakeSteps(made));
  made.times.planning_ms = MillisSince(begin);
  return Ok();
}

// Fills in the predictions for an interpreted program.
void DescribeInterpreted(Compilation& made) {
  made.predicted_us = InterpretedMicros(*made.module);
  made.time_depends_on_data = InterpretedTimeDependsOnData(*made.module);
  made.memory = MemoryOf(made.parameters, made.results, 0);
}

// A new compilation of the optimized module, after the device rejected the current one. It has no
// steps yet.
std::shared_ptr<Compilation> Successor(const Compilation& rejected, Decision why) {
  auto made = std::make_shared<Compilation>();
  made->target = rejected.target;
  made->options = rejected.options;
  made->module = CloneModule(*rejected.module);
  made->parameters = rejected.parameters;
  made->results = rejected.results;
  made->hoisted = rejected.hoisted;
  made->cost = rejected.cost;
  made->calls_host = rejected.calls_host;
  made->log = rejected.log;
  made->log.Add(std::move(why));
  made->pass_runs = rejected.pass_runs;
  made->fusion_tags = rejected.fusion_tags;
  made->extensions = rejected.extensions;
  made->times = rejected.times;
  return made;
}

}  // namespace

Result<std::shared_ptr<const Compilation>> Compile(std::unique_ptr<Module> module,
                                                   const Target& target,
                                                   const CompileOptions& options) {
  if (module->entry() == nullptr)
    return MakeError(
        ErrorCode::kNoEntry,
        "compile: the module has neither a function main nor exactly one public function",
        {.file = module->file});
  auto made = std::make_shared<Compilation>();
  made->target = target;
  made->target.mesh = {options.num_replicas, options.num_partitions};
  made->options = options;
  made->module = std::move(module);
  TOK_TRY(made->extensions, ExtensionsFor(made->target, options));
  Clock::time_point begin = Clock::now();
  if (!options.verified) TOK_RETURN_IF_ERROR(Verify(*made->module));
  made->times.verify_ms = MillisSince(begin);
  begin = Clock::now();
  TOK_RETURN_IF_ERROR(Optimize(*made));
  made->times.passes_ms = MillisSince(begin);
  made->times.target_runs = made->pass_runs.size();
  TOK_TRY(made->why_interpreted, WhyInterpreted(*made));
  begin = Clock::now();
  TOK_RETURN_IF_ERROR(Describe(*made));
  made->times.describe_ms = MillisSince(begin);
  if (made->why_interpreted.empty()) {
    TOK_RETURN_IF_ERROR(MakeProgram(*made));
  } else {
    DescribeInterpreted(*made);
  }
  if (made->extensions != nullptr) made->extensions->LogUnusedPasses(*made->module, made->log);
  return std::shared_ptr<const Compilation>(std::move(made));
}

Result<std::shared_ptr<const Compilation>> Recompile(const Compilation& rejected,
                                                     const CompileOptions& options, Decision why) {
  std::shared_ptr<Compilation> made = Successor(rejected, std::move(why));
  made->options = options;
  made->options.plan = nullptr;
  TOK_RETURN_IF_ERROR(MakeSteps(*made));
  return std::shared_ptr<const Compilation>(std::move(made));
}

std::shared_ptr<const Compilation> RecompileInterpreted(const Compilation& rejected,
                                                        const std::string& why) {
  std::shared_ptr<Compilation> made =
      Successor(rejected, {.pass = "lower",
                           .rule = "host.program",
                           .subject = rejected.module->name(),
                           .because = "the whole program is interpreted: " + why});
  made->why_interpreted = why;
  DescribeInterpreted(*made);
  return made;
}

SerializedPlan PlanOf(const Compilation& compilation) {
  const CompileOptions& options = compilation.options;
  SerializedPlan plan{.target = compilation.target.name,
                      .module_digest = StructuralDigest(*compilation.module),
                      .passes = options.passes,
                      .skip_passes = options.skip_passes,
                      .fusion_mode = options.fusion,
                      .strict = options.strict,
                      .computations = {}};
  AddPartitions(plan, *compilation.module, compilation.program.partition);
  return plan;
}

void UsePlan(CompileOptions& options, const SerializedPlan& plan) {
  options.passes = plan.passes;
  options.skip_passes = plan.skip_passes;
  options.fusion = plan.fusion_mode;
  options.strict = plan.strict;
  options.plan = std::make_shared<SerializedPlan>(plan);
}

Result<std::shared_ptr<const Compilation>> Build(std::unique_ptr<Module> module,
                                                 const SerializedPlan& plan) {
  bool is_named = plan.target == "host" || plan.target == "h200";
  TOK_TRY(Target target, is_named ? TargetNamed(plan.target) : TargetOfBackend(plan.target));
  CompileOptions options;
  UsePlan(options, plan);
  return Compile(std::move(module), target, options);
}

}  // namespace tokamak
