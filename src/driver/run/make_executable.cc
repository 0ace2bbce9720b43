// From a compilation to something that runs (docs/architecture.md, stage 14).
//
//   MakeExecutable:  steps -> machine code or cubins -> Executable
//   CompileAndLoad:  Compile and MakeExecutable, for a backend named by the options, with dumps and
//                    events
//
// If a GPU rejects a form of code that the planner chose, the program is compiled again with
// simpler forms (MakeForGpu).

#include "driver/run/make_executable.h"

#include <chrono>

#include <nlohmann/json.hpp>

#include "backend/cuda/gpu.h"
#include "driver/compile/dump.h"
#include "driver/compile/event_sink.h"
#include "driver/compile/named_options.h"
#include "driver/report/explain.h"
#include "driver/report/lint_event.h"
#include "driver/report/program_pages.h"
#include "driver/run/cpu_executable.h"
#include "driver/run/cuda_executable.h"
#include "driver/run/interp_executable.h"
#include "ir/clone.h"

namespace tokamak {
namespace {

// Fallbacks for forms that the GPU rejects: first loops and horizontally fused launches as single
// launches, then one kernel per instruction, then the interpreter.
Result<std::shared_ptr<const Executable>> MakeForGpu(std::shared_ptr<const Compilation> made) {
  Result<std::shared_ptr<const Executable>> executable = MakeCudaExecutable(made);
  auto is_rejected = [&] {
    return !executable.ok() && cuda::IsUnsupportedForm(executable.error());
  };
  Decision why{
      .pass = "device", .rule = "device.separate-launches", .subject = made->module->name()};
  CompileOptions options = made->options;
  if (is_rejected()) {
    why.because = executable.error().message;
    options.horizontal = HorizontalMode::kNone;
    options.persistent = false;
    TOK_TRY(made, Recompile(*made, options, why));
    executable = MakeCudaExecutable(made);
  }
  if (is_rejected()) {
    why.rule = "device.unfused";
    why.because = executable.error().message;
    options.fusion = FusionMode::kNone;
    options.apply_constraints = false;
    TOK_TRY(made, Recompile(*made, options, why));
    executable = MakeCudaExecutable(made);
  }
  if (!is_rejected() || made->options.require_kernels) return executable;
  TOK_TRY(std::shared_ptr<const Executable> interpreted,
          MakeInterpExecutable(RecompileInterpreted(*made, executable.error().message)));
  return OnDevice(std::move(interpreted), *made->target.device);
}

void ReportCompile(const Executable& executable, std::string_view backend, double loading_ms) {
  if (!HasEventSink()) return;
  const Compilation& made = executable.compilation();
  // An interpreted program has no compiled steps to fall back from.
  std::vector<std::string> fallbacks;
  if (made.target.kernel_backend != KernelBackend::kInterpreter) fallbacks = executable.HostSteps();
  for (const std::string& text : executable.codegen_fallbacks()) fallbacks.push_back(text);
  EmitEvent(nlohmann::json{{"event", "compile"},
                           {"name", executable.name()},
                           {"cache", "none"},
                           {"verify_us", made.times.verify_ms * 1000},
                           {"passes_us", made.times.passes_ms * 1000},
                           {"prepare_us", (made.times.planning_ms + loading_ms) * 1000},
                           {"backend", backend},
                           {"launches", executable.Launches()},
                           {"fallbacks", fallbacks},
                           {"parameters", executable.parameters().size()},
                           {"results", executable.results().size()}});
}

// Compiles a module and makes its executable; reports both where they are asked for.
Result<std::shared_ptr<const Executable>> LoadCompiled(std::unique_ptr<Module> module,
                                                       const Target& target,
                                                       const CompileOptions& options) {
  LintEvents lints = WantedLintEvents();
  std::unique_ptr<Module> written = lints == LintEvents::kAll ? CloneModule(*module) : nullptr;
  auto compiling = std::chrono::steady_clock::now();
  TOK_TRY(std::shared_ptr<const Compilation> made, Compile(std::move(module), target, options));
  ExplainCompilation(made);
  std::shared_ptr<const Compilation> linted = lints == LintEvents::kNone ? nullptr : made;
  auto begin = std::chrono::steady_clock::now();
  TOK_TRY(std::shared_ptr<const Executable> executable, MakeExecutable(std::move(made)));
  std::chrono::duration<double, std::milli> loading = std::chrono::steady_clock::now() - begin;
  ReportCompile(*executable, target.name, loading.count());
  std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - compiling;
  if (linted != nullptr) KeepLints(linted, written.get(), took.count());
  return executable;
}

}  // namespace

Result<std::shared_ptr<const Executable>> MakeExecutable(
    std::shared_ptr<const Compilation> compilation) {
  Device* device = compilation->target.device;
  if (compilation->why_interpreted.empty())
    return device == nullptr ? MakeCpuExecutable(std::move(compilation))
                             : MakeForGpu(std::move(compilation));
  TOK_TRY(std::shared_ptr<const Executable> executable,
          MakeInterpExecutable(std::move(compilation)));
  return device == nullptr ? executable : OnDevice(std::move(executable), *device);
}

Result<std::shared_ptr<const Executable>> CompileAndLoad(std::unique_ptr<Module> module,
                                                         const CompileOptions& options) {
  TOK_TRY(Target target, TargetOfBackend(options.backend));
  return CompileAndLoad(std::move(module), target, options);
}

Result<std::shared_ptr<const Executable>> CompileAndLoad(std::unique_ptr<Module> module,
                                                         const Target& target,
                                                         const CompileOptions& given) {
  CompileOptions options = given;
  TOK_RETURN_IF_ERROR(AddChecksOfEnvironment(options));
  std::string name = module->name();
  Dump dump(options.dump_dir, name);
  dump.Before(*module);
  auto begin = std::chrono::steady_clock::now();
  Result<std::shared_ptr<const Executable>> executable =
      LoadCompiled(std::move(module), target, options);
  if (!dump.IsOn()) return executable;
  std::chrono::duration<double, std::milli> all = std::chrono::steady_clock::now() - begin;
  if (!executable.ok()) {
    WriteFailedProgram(dump.prefix(), name, executable.error());
    return executable;
  }
  dump.After(*executable.value()->compilation().module);
  WriteProgramPage(dump.prefix(), executable.value()->shared_compilation(), all.count());
  return executable;
}

}  // namespace tokamak
