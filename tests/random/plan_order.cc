// Plans do not depend on the order or the names of instructions.
#include "random/plan_order.h"

#include <algorithm>

#include "analysis/effects.h"
#include "driver/compile/compilation.h"
#include "ir/clone.h"
#include "kernel/hash.h"
#include "passes/passes.h"
#include "random/check.h"
#include "random/random.h"
#include "rewrite/pipeline.h"

namespace tokamak::fuzz {
namespace {

// A valid order of the computation; effects keep their relative order.
std::vector<Instr*> AnyOrder(const Computation& computation, const Effects& effects,
                             Random& random) {
  InstrMap<std::vector<Instr*>> after(computation);
  InstrMap<size_t> open(computation, 0);
  Instr* last = nullptr;
  for (Instr* instr : computation.PostOrder()) {
    auto wait = [&](Instr* before) {
      after[before].push_back(instr);
      ++open[instr];
    };
    for (Instr* operand : instr->operands()) wait(operand);
    for (Instr* before : instr->extras().control_predecessors) wait(before);
    if (!effects.Of(*instr)) continue;
    if (last != nullptr) wait(last);
    last = instr;
  }
  std::vector<Instr*> ready, order;
  for (Instr* instr : computation.Instrs())
    if (open[instr] == 0) ready.push_back(instr);
  while (!ready.empty()) {
    auto at = static_cast<size_t>(random.Below(static_cast<int64_t>(ready.size())));
    Instr* next = ready[at];
    ready[at] = ready.back();
    ready.pop_back();
    order.push_back(next);
    for (Instr* user : after[next])
      if (--open[user] == 0) ready.push_back(user);
  }
  return order;
}

struct Setting {
  const char* name;
  FusionMode mode;
  bool gpu;
};
constexpr Setting kSettings[] = {{"greedy on a CPU", FusionMode::kGreedy, false},
                                 {"search on a CPU", FusionMode::kSearch, false},
                                 {"search on a GPU", FusionMode::kSearch, true}};

// The hashes of all kernels, sorted.
Result<std::vector<uint64_t>> KernelsOf(const Module& module, const Setting& setting) {
  TOK_TRY(Target target, TargetNamed(setting.gpu ? "h200" : "host"));
  if (!setting.gpu) target.machine = {};
  target.libraries = LibraryUse::kNone;
  CompileOptions options;
  options.passes.clear();
  options.fusion = setting.mode;
  options.check_memory = false;
  TOK_TRY(std::shared_ptr<const Compilation> made, Compile(CloneModule(module), target, options));
  std::vector<uint64_t> hashes;
  for (const Kernel& kernel : made->program.kernels) hashes.push_back(HashOf(kernel));
  std::sort(hashes.begin(), hashes.end());
  return hashes;
}

class Shuffle : public Transformation {
 public:
  std::string name() const override { return "plans:shuffled"; }
  Result<std::unique_ptr<Module>> Apply(const Module& module) const override {
    // Removes dead and duplicate instructions, whose order is arbitrary.
    std::unique_ptr<Module> live = CloneModule(module);
    DecisionLog log;
    PassContext context(log, {}, {});
    TOK_TRY(Pipeline pipeline, ParsePipeline("(cse,dce)*"));
    TOK_TRY([[maybe_unused]] std::vector<PassRun> runs,
            RunPasses(*live, pipeline, context, PipelineOptions{}));
    std::unique_ptr<Module> shuffled = Shuffled(*live, 1);
    std::string difference = DifferenceOfPlans(*live, *shuffled);
    if (!difference.empty()) return MakeError(ErrorCode::kRoundTripDiffers, difference);
    return shuffled;
  }
};

}  // namespace

std::unique_ptr<Module> Shuffled(const Module& module, uint64_t seed) {
  std::unique_ptr<Module> copy = CloneModule(module);
  Random random(seed);
  Effects effects(*copy);
  for (const auto& computation : copy->computations()) {
    computation->SetOrder(AnyOrder(*computation, effects, random));
    int64_t number = random.Below(1000);
    for (Instr* instr : computation->Instrs()) instr->set_name("r" + std::to_string(++number));
  }
  return copy;
}

std::string DifferenceOfPlans(const Module& x, const Module& y) {
  if (!WhyNotLowered(x).empty()) return "";
  for (const Setting& setting : kSettings) {
    Result<std::vector<uint64_t>> of_x = KernelsOf(x, setting), of_y = KernelsOf(y, setting);
    if (of_x.ok() != of_y.ok()) return std::string(setting.name) + ": one of them is rejected";
    if (!of_x.ok() || of_x.value() == of_y.value()) continue;
    std::vector<uint64_t> only;
    std::set_difference(of_x.value().begin(), of_x.value().end(), of_y.value().begin(),
                        of_y.value().end(), std::back_inserter(only));
    return std::string(setting.name) + ": " + std::to_string(of_x.value().size()) + " and " +
           std::to_string(of_y.value().size()) + " kernels, " + std::to_string(only.size()) +
           " of the first are not among the second";
  }
  return "";
}

std::unique_ptr<Transformation> PlanShuffle() {
  return std::make_unique<Shuffle>();
}

}  // namespace tokamak::fuzz
