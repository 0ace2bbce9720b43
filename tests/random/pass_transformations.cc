// Each pass of passes.def, and the pipeline that Compile runs.
#include "ir/clone.h"
#include "passes/passes.h"
#include "random/check.h"

namespace tokamak::fuzz {
namespace {

class Passes : public Transformation {
 public:
  Passes(std::string name, Pipeline steps) : name_(std::move(name)), steps_(std::move(steps)) {}
  std::string name() const override { return name_; }
  Result<std::unique_ptr<Module>> Apply(const Module& module) const override {
    std::unique_ptr<Module> changed = CloneModule(module);
    DecisionLog log;
    PassContext context(log);
    PipelineOptions options;
    options.verify_each = true;  // names the pass, and makes an error of rules that fight
    TOK_RETURN_IF_ERROR(RunPasses(*changed, steps_, context, options));
    return changed;
  }

 private:
  std::string name_;
  Pipeline steps_;
};

// The pass, and before it those that give what it needs.
void AddWithNeeds(Pass pass, Pipeline& steps) {
  uint32_t needs = InfoOf(pass).needs;
  for (size_t i = 0; i < kPasses.size(); ++i) {
    if ((kPasses[i].gives & needs) == 0) continue;
    AddWithNeeds(static_cast<Pass>(i), steps);
    needs &= ~kPasses[i].gives;
  }
  steps.push_back({pass});
}

}  // namespace

std::vector<std::string> PassNames() {
  std::vector<std::string> names;
  for (const PassInfo& info : kPasses) names.emplace_back(info.name);
  names.emplace_back("pipeline");
  return names;
}

std::unique_ptr<Transformation> PassNamed(std::string_view name) {
  if (name == "pipeline")
    return std::make_unique<Passes>(
        "pipeline", Pipeline(std::begin(kDefaultPipeline), std::end(kDefaultPipeline)));
  Pipeline steps;
  if (std::optional<Pass> pass = PassFromName(name)) {
    AddWithNeeds(*pass, steps);
  } else if (name.find_first_of(",(") != std::string_view::npos) {
    auto parsed = ParsePipelineUnchecked(name);
    if (!parsed.ok()) return nullptr;
    steps = std::move(parsed).value();
  }
  if (steps.empty()) return nullptr;
  return std::make_unique<Passes>(std::string(name), std::move(steps));
}

}  // namespace tokamak::fuzz
