#include "driver/counters.h"

#include "driver/account/account.h"

#if TOK_HAVE_CUDA
#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "backend/cuda/launch_source.h"
#include "backend/cuda/nvrtc.h"
#include "cost/rates.h"
#include "driver/device_loops.h"
#include "ir/clone.h"
#endif

namespace tokamak {

#if TOK_HAVE_CUDA
namespace {

// What a multiprocessor hands out, and holds at most, whatever its machine file says.
constexpr double kWarp = 32, kRegisterStep = 256, kMostTeams = 32, kTeamBytesOfSystem = 1024;

using Grids = std::unordered_map<size_t, int64_t>;  // teams of kernels, by number

void FindGrids(const std::vector<RunStep>& steps, Grids& grids) {
  for (const RunStep& step : steps) {
    if (step.kind == StepKind::kLaunch) grids[step.target] = step.grid;
    for (const std::vector<RunStep>& block : step.blocks) FindGrids(block, grids);
  }
}

double OccupancyOf(const LaunchCounters::Code& code, const Rates& rates) {
  double warps = std::ceil(static_cast<double>(code.threads) / kWarp);
  double registers =
      std::ceil(code.registers * kWarp / kRegisterStep) * kRegisterStep * std::max(warps, 1.0);
  double teams = std::min(
      {kMostTeams, std::floor(rates.threads / (warps * kWarp)),
       std::floor(rates.registers / std::max(registers, 1.0)),
       std::floor(rates.team_bytes / (static_cast<double>(code.team_bytes) + kTeamBytesOfSystem))});
  return std::min(1.0, teams * warps * kWarp / rates.threads);
}

Result<LaunchCounters::Code> CodeOf(const StepAccount& step, const LoweredProgram& program,
                                    const Grids& grids, const Rates& rates) {
  TOK_TRY(const cuda::Nvrtc* nvrtc, cuda::Nvrtc::Open());
  cuda::LaunchForm form{.label = step.name, .parts = {}};
  if (step.step->kind == StepKind::kWhile) form = LoopLaunchOf(*step.step, program).form;
  LaunchCounters::Code code;
  for (size_t number : step.kernels) {
    if (!form.loop) form.parts.push_back({&program.kernels[number], grids.at(number)});
    code.teams += grids.at(number);
  }
  TOK_TRY(cuda::LaunchSource launch, cuda::SourceOf(form, cuda::LaunchName(form)));
  TOK_TRY(cuda::CudaCode made, nvrtc->Compile(launch.source, "sm_90"));
  code.registers = made.registers;
  code.spilled_bytes = made.spilled_bytes;
  code.team_bytes = made.team_bytes + launch.source.dynamic_bytes;
  code.threads = 1;
  for (int threads : launch.source.threads) code.threads *= threads;
  code.occupancy = OccupancyOf(code, rates);
  return code;
}

}  // namespace

Result<std::vector<LaunchCounters>> CountersOf(const Module& module, FusionMode mode) {
  TOK_TRY(Target target, TargetNamed("h200"));
  CompileOptions options;
  options.fusion = mode;
  std::unique_ptr<Module> copy = CloneModule(module);
  TOK_TRY(std::shared_ptr<const Compilation> made, Compile(std::move(copy), target, options));
  TOK_TRY(ProgramAccount account, AccountOf(std::move(made)));
  if (!account.why_interpreted().empty())
    return MakeError(ErrorCode::kNoKernel,
                     "bench: the interpreter runs all of it: " + account.why_interpreted(),
                     {.file = module.file});
  Grids grids;
  FindGrids(account.program().steps, grids);
  std::vector<LaunchCounters> all;
  for (const StepAccount& step : account.steps) {
    LaunchCounters counters{.name = step.name,
                            .generator = step.generator,
                            .runs = step.runs(),
                            .bytes = step.reads + step.writes,
                            .predicted_us = step.predicted_us.value_or(0),
                            .code = std::nullopt};
    if (!step.kernels.empty()) {
      TOK_TRY(counters.code, CodeOf(step, account.program(), grids, RatesOf(account.machine())));
    }
    all.push_back(std::move(counters));
  }
  return all;
}

#else

Result<std::vector<LaunchCounters>> CountersOf(const Module&, FusionMode) {
  return MakeError(ErrorCode::kBackendNotBuilt, "bench: this build has no CUDA backend");
}

#endif

}  // namespace tokamak
