#include "driver/report/counters.h"

#include "driver/report/compile_report.h"

#if TOK_HAVE_CUDA
#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "backend/cuda/launch_source.h"
#include "backend/cuda/nvrtc.h"
#include "cost/rates.h"
#include "driver/compile/device_loops.h"
#include "ir/clone.h"
#endif

namespace tokamak {

#if TOK_HAVE_CUDA
namespace {

// Hardware limits of an SM that are not in the machine file (CUDA programming guide, compute
// capability 9.0): threads per warp, register allocation granularity per warp, resident blocks, and
// shared memory reserved by the system per block, in bytes.
constexpr double kWarp = 32, kRegisterStep = 256, kMaxResidentBlocks = 32,
                 kReservedSharedBytes = 1024;

using Grids = std::unordered_map<size_t, int64_t>;  // blocks of each kernel, by kernel number

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
  double blocks =
      std::min({kMaxResidentBlocks, std::floor(rates.threads / (warps * kWarp)),
                std::floor(rates.registers / std::max(registers, 1.0)),
                std::floor(rates.shared_bytes /
                           (static_cast<double>(code.shared_bytes) + kReservedSharedBytes))});
  return std::min(1.0, blocks * warps * kWarp / rates.threads);
}

Result<LaunchCounters::Code> CodeOf(const StepReport& step, const LoweredProgram& program,
                                    const Grids& grids, const Rates& rates) {
  TOK_TRY(const cuda::Nvrtc* nvrtc, cuda::Nvrtc::Open());
  cuda::LaunchForm form{.label = step.name, .entries = {}};
  if (step.step->kind == StepKind::kWhile) form = LoopLaunchOf(*step.step, program).form;
  LaunchCounters::Code code;
  for (size_t number : step.kernels) {
    if (!form.loop) form.entries.push_back({&program.kernels[number], grids.at(number)});
    code.blocks += grids.at(number);
  }
  TOK_TRY(cuda::LaunchSource launch, cuda::SourceOf(form, cuda::LaunchName(form)));
  TOK_TRY(cuda::CudaCode made, nvrtc->Compile(launch.source, cuda::kHopper));
  code.registers = made.registers;
  code.spilled_bytes = made.spilled_bytes;
  code.shared_bytes = made.shared_bytes + launch.source.dynamic_bytes;
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
  TOK_TRY(CompileReport report, ReportOf(std::move(made)));
  if (!report.why_interpreted().empty())
    return MakeError(ErrorCode::kNoKernel,
                     "bench: the whole program is interpreted: " + report.why_interpreted(),
                     {.file = module.file});
  Grids grids;
  FindGrids(report.program().steps, grids);
  std::vector<LaunchCounters> all;
  for (const StepReport& step : report.steps) {
    LaunchCounters counters{.name = step.name,
                            .generator = step.generator,
                            .runs = step.runs(),
                            .bytes = step.reads + step.writes,
                            .predicted_us = step.predicted_us.value_or(0),
                            .code = std::nullopt};
    if (!step.kernels.empty()) {
      TOK_TRY(counters.code, CodeOf(step, report.program(), grids, RatesOf(report.machine())));
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
