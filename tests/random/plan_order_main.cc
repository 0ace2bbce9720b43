// plan_order FILE...: checks that each program (or every program in a folder), after the default
// passes, has the same kernels in any order of its instructions.
#include <cstdio>
#include <filesystem>

#include "lower/lower.h"
#include "passes/passes.h"
#include "random/plan_order.h"
#include "rewrite/pipeline.h"
#include "text/load.h"

namespace tokamak::fuzz {
namespace {

// Number of random orders per program (chosen: keeps the test short).
constexpr uint64_t kOrders = 3;

struct Tally {
  int passed = 0, failed = 0, not_lowered = 0;
};

// Describes the difference; "" if there is none.
std::string Check(Module& module, bool& not_lowered) {
  DecisionLog log;
  PassContext context(log, {}, {});
  Result<Pipeline> pipeline = ParsePipeline("default");
  not_lowered = !pipeline.ok() ||
                !RunPasses(module, pipeline.value(), context, PipelineOptions{}).ok() ||
                !WhyNotLowered(module).empty();
  if (not_lowered) return "";
  for (uint64_t seed = 1; seed <= kOrders; ++seed)
    if (std::string why = DifferenceOfPlans(module, *Shuffled(module, seed)); !why.empty())
      return why;
  return "";
}

void CheckFile(const std::string& path, Tally& tally) {
  Result<LoadedFile> file = LoadFile(path, Verification::kYes);
  if (!file.ok()) return;
  for (Result<std::unique_ptr<Module>>& program : file.value().programs) {
    if (!program.ok() || program.value()->entry() == nullptr) continue;
    bool not_lowered = false;
    std::string why = Check(*program.value(), not_lowered);
    ++(not_lowered ? tally.not_lowered : why.empty() ? tally.passed : tally.failed);
    if (!why.empty()) std::printf("%s: %s\n", path.c_str(), why.c_str());
  }
}

int Main(int argc, char** argv) {
  Tally tally;
  for (int i = 1; i < argc; ++i) {
    if (!std::filesystem::is_directory(argv[i])) {
      CheckFile(argv[i], tally);
      continue;
    }
    for (const auto& entry : std::filesystem::recursive_directory_iterator(argv[i]))
      if (entry.path().extension() == ".hlo" || entry.path().extension() == ".mlir")
        CheckFile(entry.path().string(), tally);
  }
  std::printf("%d other programs are not lowered to kernels\n", tally.not_lowered);
  std::printf("tally: %d passed, %d failed, 0 skipped\n", tally.passed, tally.failed);
  return tally.failed > 0 || tally.passed == 0 ? 1 : 0;
}

}  // namespace
}  // namespace tokamak::fuzz

int main(int argc, char** argv) {
  return tokamak::fuzz::Main(argc, argv);
}
