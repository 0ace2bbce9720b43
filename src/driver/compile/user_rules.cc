#include "driver/compile/user_rules.h"

#include <algorithm>
#include <mutex>

#include "driver/compile/compilation.h"
#include "ir/clone.h"
#include "passes/passes.h"
#include "support/digest.h"

namespace tokamak {
namespace {

struct RuleRegistry {
  std::mutex mutex;
  UserRules rules;
  std::vector<UserRules> scopes;

  static RuleRegistry& OfProcess() {
    static auto* registry = new RuleRegistry;
    return *registry;
  }
};

// Instructions above which both programs of a comparison are planned with the least effort. Chosen:
// the search takes about a second there, and is made up to 48 times.
constexpr size_t kQuicklyPlanned = 600;

// The part of a pipeline before, or after, run `stage` of the pass, without that pass and without
// target passes, which Compile adds.
Pipeline PartOf(const Pipeline& passes, int64_t stage, bool before) {
  Pipeline part;
  int64_t seen = 0;
  for (const Step& step : passes) {
    if (step.pass == Pass::kApplyRegisteredRules) {
      ++seen;
      continue;
    }
    if ((seen <= stage) == before && InfoOf(step.pass).targets == kNoTarget) part.push_back(step);
  }
  return part;
}

}  // namespace

void AddUserRule(std::shared_ptr<const UserRule> rule) {
  RuleRegistry& registry = RuleRegistry::OfProcess();
  std::lock_guard<std::mutex> lock(registry.mutex);
  registry.rules.push_back(std::move(rule));
}

void RemoveUserRule(uint64_t id) {
  RuleRegistry& registry = RuleRegistry::OfProcess();
  std::lock_guard<std::mutex> lock(registry.mutex);
  std::erase_if(registry.rules, [&](const auto& rule) { return rule->id == id; });
}

void EnterRuleScope(UserRules rules) {
  RuleRegistry& registry = RuleRegistry::OfProcess();
  std::lock_guard<std::mutex> lock(registry.mutex);
  registry.scopes.push_back(std::move(rules));
}

void LeaveRuleScope() {
  RuleRegistry& registry = RuleRegistry::OfProcess();
  std::lock_guard<std::mutex> lock(registry.mutex);
  if (!registry.scopes.empty()) registry.scopes.pop_back();
}

UserRules ActiveUserRules() {
  RuleRegistry& registry = RuleRegistry::OfProcess();
  std::lock_guard<std::mutex> lock(registry.mutex);
  return registry.scopes.empty() ? registry.rules : registry.scopes.back();
}

std::string ActiveUserRulesKey() {
  std::string key;
  for (const auto& rule : ActiveUserRules()) key += rule->content + ";";
  return key;
}

std::optional<RuleSession> RuleSession::Of(const Target& target, const CompileOptions& options) {
  if (!options.user_rules) return std::nullopt;
  UserRules rules = ActiveUserRules();
  rules.insert(rules.end(), options.rules.begin(), options.rules.end());
  if (rules.empty()) return std::nullopt;
  return RuleSession(target, options, std::move(rules));
}

Status RuleSession::Canonicalize(Module& module, int64_t stage) {
  DecisionLog log;
  PassContext context(log, {}, {.strict = options_.strict});
  PipelineOptions pipeline;
  pipeline.skip = options_.skip_passes;
  pipeline.verify_each = true;
  Pipeline part = PartOf(options_.passes, stage, true);
  for (std::span<const Step> steps : {std::span<const Step>(kEntryPipeline), {part}}) {
    TOK_TRY(std::vector<PassRun> runs, RunPasses(module, steps, context, pipeline));
  }
  return Ok();
}

std::string RuleSession::PassesKey(int64_t stage) {
  std::string key =
      ToString(PartOf(options_.passes, stage, true)) + (options_.strict ? " strict" : "");
  for (Pass pass : options_.skip_passes) key += " -" + std::string(InfoOf(pass).name);
  return key;
}

Status RuleSession::Clean(Module& module) {
  DecisionLog log;
  PassContext context(log);
  Step step{Pass::kDce};
  TOK_TRY(std::vector<PassRun> runs, RunPasses(module, {&step, 1}, context));
  return Ok();
}

// Compiles the program from here on, without rules.
Result<double> RuleSession::EstimateUs(const Module& module, int64_t stage) {
  CompileOptions options = options_;
  options.user_rules = false;
  options.verified = true;
  options.passes = PartOf(options_.passes, stage, false);
  options.plan = nullptr;
  options.hoist = false;
  options.require_kernels = false;
  options.dump_dir.clear();
  if (module.CountInstrs() > kQuicklyPlanned) options.effort = Effort::kFast;
  TOK_TRY(std::shared_ptr<const Compilation> made, Compile(CloneModule(module), target_, options));
  return made->predicted_us;
}

void RuleSession::Warn(const UserRule& rule, const Error& error) {
  if (rule.functions != nullptr) rule.functions->Warn(error);
}

}  // namespace tokamak
