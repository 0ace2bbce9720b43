// Each pass of passes.def, and the pipeline that Compile runs.
#include <algorithm>

#include "cost/machine.h"
#include "driver/compile/target.h"
#include "gen/library/libraries.h"
#include "ir/clone.h"
#include "ir/compare.h"
#include "passes/passes.h"
#include "random/check.h"
#include "rewrite/rules.h"

namespace tokamak::fuzz {
namespace {

bool HasFma(const Module& module) {
  for (const auto& computation : module.computations())
    for (const Instr* instr : computation->Instrs())
      if (instr->op() == Op::kFma) return true;
  return false;
}

// Splits fma into a product and a sum with both roundings, which restores the bits before form-fma.
Status SplitFma(Module& module) {
  static constexpr Rule kRules[] = {
      {"fma.apart", "", m::Fma(m::x, m::y, m::z), m::Add(m::Multiply(m::x, m::y), m::z), nullptr,
       ""},
  };
  static const RuleSet* rules = new RuleSet(kRules);
  DecisionLog log;
  PassContext context(log, {}, {});
  for (const auto& computation : module.computations())
    TOK_RETURN_IF_ERROR(ApplyRules(*computation, *rules, context));
  return Ok();
}

class Passes : public Transformation {
 public:
  Passes(std::string name, Pipeline steps, TargetKind kind, bool twice)
      : name_(std::move(name)), steps_(std::move(steps)), kind_(kind), twice_(twice) {}
  std::string name() const override { return name_; }
  // A changed rounding can grow arbitrarily: where a pass that may round changed something, the
  // program must only be valid and run; check_passes.py compares its values. A pipeline runs in
  // strict mode, where only target passes change rounding.
  bool Keeps(const Module& module) const override {
    if (std::ranges::none_of(steps_, [](const Step& step) { return MayRound(step.pass); }))
      return true;
    // The fma ops that it forms are split again (Optimize), and so are the program's own.
    if (steps_.size() == 1 && steps_.front().pass == Pass::kFormFma) return !HasFma(module);
    std::unique_ptr<Module> changed = CloneModule(module);
    Result<std::vector<PassRun>> runs = Optimize(*changed);
    return runs.ok() && std::ranges::none_of(runs.value(), [](const PassRun& run) {
             return run.changed == Changed::kYes && MayRound(run.pass);
           });
  }
  Result<std::unique_ptr<Module>> Apply(const Module& module) const override {
    std::unique_ptr<Module> changed = CloneModule(module);
    TOK_RETURN_IF_ERROR(Optimize(*changed));
    if (!twice_) return changed;
    std::unique_ptr<Module> again = CloneModule(*changed);
    TOK_RETURN_IF_ERROR(Optimize(*again));
    std::string difference = FirstDifference(*changed, *again);
    if (difference.empty()) return changed;
    return MakeError(ErrorCode::kNotDeterministic, "the second time changes more: " + difference);
  }

  // Programs whose values are not compared must still run.
  bool RunsAlways() const override { return true; }

 private:
  bool IsStrict() const { return steps_.size() > 1; }

  Result<std::vector<PassRun>> Optimize(Module& module) const {
    DecisionLog log;
    PassLimits limits;
    limits.rerolled_steps = 3;  // programs are small, so profitability is ignored
    limits.rerolled_instrs = limits.rerolled_step = limits.rerolled_heavy = 1;
    Machine machine;
    if (kind_ == kGpu) {
      TOK_TRY(Target h200, TargetNamed("h200"));
      machine = h200.machine;
      machine.cores = 1;  // gives small programs the schedules of large ones
    }
    AssumedLibraries libraries(kind_ == kGpu);
    PassTarget target = kind_ == kNoTarget ? PassTarget{} : TargetOf(machine, &libraries);
    PassContext context(log, limits, {.strict = IsStrict()}, target);
    PipelineOptions options;
    options.verify_each = true;  // names the failing pass, and reports rules that undo each other
    TOK_TRY(std::vector<PassRun> runs, RunPasses(module, steps_, context, options));
    if (steps_.size() == 1 && steps_.front().pass == Pass::kFormFma && !twice_)
      TOK_RETURN_IF_ERROR(SplitFma(module));
    return runs;
  }

  std::string name_;
  Pipeline steps_;
  TargetKind kind_;
  bool twice_;
};

// Adds the pass after its prerequisites.
void AddWithNeeds(Pass pass, Pipeline& steps) {
  uint32_t needs = InfoOf(pass).needs & ~kAtStart;
  for (size_t i = 0; i < kPasses.size(); ++i) {
    if ((kPasses[i].establishes & needs) == 0) continue;
    AddWithNeeds(static_cast<Pass>(i), steps);
    needs &= ~kPasses[i].establishes;
  }
  steps.push_back({pass});
}

}  // namespace

std::vector<std::string> PassNames() {
  std::vector<std::string> names;
  for (const PassInfo& info : kPasses) {
    if ((info.flags & kAddsArguments) != 0) continue;  // OnBackend runs those
    if (info.targets == kNoTarget) names.emplace_back(info.name);
    if ((info.targets & kCpu) != 0) names.push_back("cpu:" + std::string(info.name));
    if ((info.targets & kGpu) != 0) names.push_back("gpu:" + std::string(info.name));
  }
  for (const char* pipeline : {"pipeline", "cpu:pipeline", "gpu:pipeline"})
    names.emplace_back(pipeline);
  return names;
}

std::unique_ptr<Transformation> PassNamed(std::string_view name) {
  constexpr std::string_view kTwice = "twice:";
  bool twice = name.starts_with(kTwice);
  std::string_view inner = twice ? name.substr(kTwice.size()) : name;
  TargetKind kind = inner.starts_with("cpu:") ? kCpu : inner.starts_with("gpu:") ? kGpu : kNoTarget;
  if (kind != kNoTarget) inner.remove_prefix(4);
  Pipeline steps;
  if (inner == "pipeline") {
    steps.assign(std::begin(kDefaultPipeline), std::end(kDefaultPipeline));
    if (kind != kNoTarget)
      steps.insert(steps.end(), PipelineOf(kind).begin(), PipelineOf(kind).end());
  } else if (std::optional<Pass> pass = PassFromName(inner)) {
    AddWithNeeds(*pass, steps);
  } else if (inner.find_first_of(",(") != std::string_view::npos) {
    auto parsed = ParsePipelineUnchecked(inner);
    if (parsed.ok()) steps = std::move(parsed).value();
  }
  if (steps.empty() ||
      !std::ranges::all_of(steps, [&](const Step& step) { return IsFor(step.pass, kind); }))
    return nullptr;
  return std::make_unique<Passes>(std::string(name), std::move(steps), kind, twice);
}

}  // namespace tokamak::fuzz
