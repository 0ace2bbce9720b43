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

#include "driver/compile/compilation.h"
#include "driver/compile/fusion_options.h"
#include "driver/compile/host_rates.h"
#include "rewrite/pipeline.h"
#include "text/load.h"

namespace tokamak {
namespace {

Result<std::string> Plan(std::unique_ptr<Module> module, FusionMode mode, const Target& target,
                         const char* passes) {
  CompileOptions options;
  options.fusion = mode;
  TOK_TRY(options.passes, ParsePipeline(passes));
  TOK_TRY(std::shared_ptr<const Compilation> compilation,
          Compile(std::move(module), target, options));
  if (!compilation->why_interpreted.empty())
    return fmt::format(R"({{"why_not": "{}"}})", compilation->why_interpreted);
  const LoweredProgram& program = compilation->program;
  size_t instrs = 0;
  PlanningStats all;
  for (const auto& [computation, stats] : program.planning) {
    instrs += computation->size();
    all.baseline_ms += stats.baseline_ms;
    all.greedy_ms += stats.greedy_ms;
    all.search_ms += stats.search_ms;
    all.build_ms += stats.build_ms;
    all.schedule_ms += stats.schedule_ms;
    all.unfused_us += stats.unfused_us;
    all.baseline_us += stats.baseline_us;
    all.greedy_us += stats.greedy_us;
    all.chosen_us += stats.chosen_us;
    all.moves_enumerated += stats.moves_enumerated;
    all.kernels_built_for_costs += stats.kernels_built_for_costs;
  }
  return fmt::format(
      R"({{"instructions": {}, "first_ms": {:.3f}, "greedy_ms": {:.3f}, "search_ms": {:.3f}, )"
      R"("build_ms": {:.3f}, "schedule_ms": {:.3f}, "moves": {}, "kernels_built": {}, )"
      R"("launches": {}, "arena": {}, "unfused_us": {:.1f}, "first_us": {:.1f}, "greedy_us": {:.1f}, "chosen_us": {:.1f}, )"
      R"("us": {:.3f}}})",
      instrs, all.baseline_ms, all.greedy_ms, all.search_ms, all.build_ms, all.schedule_ms,
      all.moves_enumerated, all.kernels_built_for_costs, program.launches, program.arena_bytes,
      all.unfused_us, all.baseline_us, all.greedy_us, all.chosen_us, compilation->predicted_us);
}

int Run(int argc, char** argv) {
  if (argc < 5) {
    std::fputs("plan_times MODE TARGET PASSES FILE...\n", stderr);
    return 2;
  }
  Result<FusionMode> mode = ParseFusionMode(argv[1]);
  if (!mode.ok()) return 2;
  bool is_unknown = std::strcmp(argv[2], "unknown") == 0;
  if (is_unknown) UseDefaultRates();
  Result<Target> target = TargetNamed(is_unknown ? "host" : argv[2]);
  if (!target.ok()) return 2;
  for (int i = 4; i < argc; ++i) {
    Result<LoadedFile> file = LoadFile(argv[i], Verification::kNo);
    if (!file.ok()) return 1;
    for (Result<std::unique_ptr<Module>>& program : file.value().programs) {
      if (!program.ok()) return 1;
      Result<std::string> line =
          Plan(std::move(program).value(), mode.value(), target.value(), argv[3]);
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
