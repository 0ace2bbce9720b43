// The measuring program of bench/plan_times.py: plans each program once and prints a line of JSON.
//
//   plan_times MODE TARGET PASSES FILE...     MODE: none, greedy, search;
//                                             TARGET: host, unknown, h200;
//                                             PASSES: default, or others that run before
//
// `unknown`: this machine, estimated with the rates of a machine without a machine file.
#include <cstdio>
#include <cstring>
#include <string>

#include <fmt/format.h>

#include "driver/fusion_options.h"
#include "driver/host_rates.h"
#include "driver/kernel_codes.h"
#include "driver/load.h"
#include "driver/lower_module.h"
#include "driver/step_cost.h"
#include "passes/passes.h"
#include "rewrite/pipeline.h"

namespace tokamak {
namespace {

Result<std::string> Plan(Module& module, FusionMode mode, bool gpu, const char* passes) {
  DecisionLog log;
  TOK_TRY(Pipeline pipeline, ParsePipeline(passes));
  PassContext context(log, {}, {});
  TOK_TRY([[maybe_unused]] std::vector<PassRun> runs,
          RunPasses(module, pipeline, context, PipelineOptions{}));
  if (std::string why = WhyNotLowered(module); !why.empty())
    return fmt::format(R"({{"why_not": "{}"}})", why);
  LowerOptions options;
  options.plan.mode = mode;
  options.machine = gpu ? GpuMachine() : HostMachine();
  if (gpu) options.machine.rates = &GpuRates();
  TOK_TRY(LoweredProgram program,
          gpu ? LowerModule(module, options, log) : LowerForHost(module, options, log));
  size_t instrs = 0;
  PlanningStats all;
  for (const auto& [computation, stats] : program.planning) {
    instrs += computation->size();
    all.baseline_ms += stats.baseline_ms;
    all.greedy_ms += stats.greedy_ms;
    all.search_ms += stats.search_ms;
    all.build_ms += stats.build_ms;
    all.unfused_us += stats.unfused_us;
    all.baseline_us += stats.baseline_us;
    all.greedy_us += stats.greedy_us;
    all.chosen_us += stats.chosen_us;
    all.moves_enumerated += stats.moves_enumerated;
    all.kernels_built_for_costs += stats.kernels_built_for_costs;
  }
  return fmt::format(
      R"({{"instructions": {}, "first_ms": {:.3f}, "greedy_ms": {:.3f}, "search_ms": {:.3f}, )"
      R"("build_ms": {:.3f}, "moves": {}, "kernels_built": {}, "launches": {}, "arena": {}, )"
      R"("unfused_us": {:.1f}, "first_us": {:.1f}, "greedy_us": {:.1f}, "chosen_us": {:.1f}, )"
      R"("us": {:.3f}}})",
      instrs, all.baseline_ms, all.greedy_ms, all.search_ms, all.build_ms, all.moves_enumerated,
      all.kernels_built_for_costs, program.launches, program.arena_bytes, all.unfused_us,
      all.baseline_us, all.greedy_us, all.chosen_us,
      EstimateCost(program.steps, program, options.machine));
}

int Run(int argc, char** argv) {
  if (argc < 5) {
    std::fputs("plan_times MODE TARGET PASSES FILE...\n", stderr);
    return 2;
  }
  Result<FusionMode> mode = ParseFusionMode(argv[1]);
  if (!mode.ok()) return 2;
  if (std::strcmp(argv[2], "unknown") == 0) UseDefaultRates();
  for (int i = 4; i < argc; ++i) {
    Result<LoadedFile> file = LoadFile(argv[i], Verification::kNo);
    if (!file.ok()) return 1;
    for (Result<std::unique_ptr<Module>>& program : file.value().programs) {
      if (!program.ok()) return 1;
      Result<std::string> line =
          Plan(*program.value(), mode.value(), std::strcmp(argv[2], "h200") == 0, argv[3]);
      if (!line.ok()) return 1;
      std::printf("%s\n", line.value().c_str());
      std::fflush(stdout);
    }
  }
  return 0;
}

}  // namespace
}  // namespace tokamak

int main(int argc, char** argv) {
  return tokamak::Run(argc, argv);
}
