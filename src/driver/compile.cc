#include <algorithm>
#include <chrono>
#include <cstdio>

#include <nlohmann/json.hpp>

#include "driver/account/explain.h"
#include "driver/backend.h"
#include "driver/cpu_executable.h"
#include "driver/cuda_executable.h"
#include "driver/devices.h"
#include "driver/dump.h"
#include "driver/executable.h"
#include "driver/fusion_options.h"
#include "driver/interp_executable.h"
#include "driver/named_options.h"
#include "driver/program_facts.h"
#include "driver/report.h"
#include "ir/infer.h"
#include "passes/passes.h"

namespace tokamak {
namespace {

using Clock = std::chrono::steady_clock;

double MicrosSince(Clock::time_point begin) {
  return std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
}

// Runs the passes that the options ask for over a verified module.
Status Optimize(Module& module, const CompileOptions& options, DecisionLog& log) {
  TOK_TRY(FusionChoice fusion, FusionOf(options));
  MarkPins(module, fusion.pins);
  TOK_TRY(Pipeline pipeline, ParsePipeline(options.passes));
  TOK_TRY(Pipeline skipped, ParsePipelineUnchecked(options.skip_passes));
  PipelineOptions pipeline_options;
  for (const Step& step : skipped) pipeline_options.skip.push_back(step.pass);
  PassContext context(log, {}, {.strict = options.strict});
  TOK_TRY([[maybe_unused]] std::vector<PassRun> runs,
          RunPasses(module, pipeline, context, pipeline_options));
  return Ok();
}

struct CompileTimes {
  double verify_us = 0, passes_us = 0, prepare_us = 0;
};

void ReportCompile(const Executable& executable, std::string_view backend,
                   const CompileTimes& times) {
  if (!IsReporting()) return;
  // Where nothing is compiled, nothing falls back.
  std::vector<std::string> fallbacks;
  if (backend != "interp") fallbacks = executable.HostSteps();
  for (const std::string& text : executable.codegen_fallbacks()) fallbacks.push_back(text);
  Report(nlohmann::json{{"event", "compile"},
                        {"name", executable.name()},
                        {"cache", "none"},
                        {"verify_us", times.verify_us},
                        {"passes_us", times.passes_us},
                        {"prepare_us", times.prepare_us},
                        {"backend", backend},
                        {"launches", executable.Launches()},
                        {"fallbacks", fallbacks},
                        {"parameters", executable.parameters().size()},
                        {"results", executable.results().size()}});
}

}  // namespace

Status Executable::Run(std::span<const void* const> inputs, std::span<void* const> outputs,
                       const RunControl& control) const {
  Clock::time_point begin = Clock::now();
  Status status = RunOnce(inputs, outputs, control);
  double took = MicrosSince(begin);
  // The first measurement replaces the price. Later ones pull at it, those below more than those
  // above: a thread that lost its processor for a while says nothing of the program, and what the
  // data decide is not predicted by it (time_depends_on_data). A race loses one.
  double before = predicted_us_.load(std::memory_order_relaxed);
  bool first = !measured_.load(std::memory_order_relaxed);
  double later =
      took < before ? (before + took) / 2 : before * 0.75 + std::min(took, 2 * before) * 0.25;
  predicted_us_.store(first ? took : later, std::memory_order_relaxed);
  if (first) {
    measured_.store(true, std::memory_order_relaxed);
    if (IsReporting())
      Report(nlohmann::json{{"event", "first_run"}, {"name", name_}, {"run_us", took}});
  }
  return status;
}

Status Executable::Issue(std::span<const void* const>, std::span<void* const>,
                         const RunControl&) const {
  return MakeError(ErrorCode::kUnsupportedOp, "run: '" + name_ + "' runs on no device");
}

Result<std::shared_ptr<const Executable>> Compile(std::unique_ptr<Module> module,
                                                  const CompileOptions& given) {
  CompileOptions options = given;
  TOK_RETURN_IF_ERROR(AddChecksOfEnvironment(options));
  TOK_TRY(const BackendInfo* backend, FindBackend(options.backend));
  if (module->entry() == nullptr)
    return MakeError(ErrorCode::kNoEntry,
                     "compile: the module has neither @main nor an only public function",
                     {.file = module->file});
  Dump dump(options.dump_dir, module->name());
  dump.Before(*module);
  Clock::time_point begin = Clock::now();
  Status verified = options.verified ? Ok() : VerifyModule(*module);
  if (!verified.ok()) {
    AddOrigin(verified.error(), *module);
    return std::move(verified.error());
  }
  ExplainCompilation(*module, options);
  CompileTimes times;
  times.verify_us = MicrosSince(begin);
  begin = Clock::now();
  DecisionLog log;
  TOK_RETURN_IF_ERROR(Optimize(*module, options, log));
  times.passes_us = MicrosSince(begin);
  begin = Clock::now();
  std::shared_ptr<const Executable> executable;
  TOK_TRY(Device * device, DeviceOf(backend->name));
  if (device != nullptr) {
    options.backend = backend->name;
    TOK_TRY(executable, MakeCudaExecutable(module, options, *device, log));
  } else if (backend->name != "interp") {
    KernelMaker maker = backend->name == "sim"       ? KernelMaker::kSimulator
                        : backend->name == "sim-gpu" ? KernelMaker::kGpuSimulator
                                                     : KernelMaker::kMachineCode;
    TOK_TRY(executable, MakeCpuExecutable(module, options, maker, log));
  }
  if (executable == nullptr) {
    TOK_TRY(executable, MakeInterpExecutable(std::move(module), options));
    if (device != nullptr) executable = OnDevice(std::move(executable), *device);
  }
  times.prepare_us = MicrosSince(begin);
  ReportCompile(*executable, backend->name, times);
  dump.After(*executable);
  return executable;
}

}  // namespace tokamak
