// The pass works in two runs. The trial works on a copy of the program: it finds a group of equal
// instances, replaces them, and keeps the copy if the host predicts that it is faster. It records
// one verdict per group. The second run finds the same groups in the program itself, in the same
// order, and follows the verdicts. So a rule that fails or does not end leaves no trace in the
// program: the trial starts again without it.

#include "rewrite/user_rules.h"

#include <algorithm>
#include <unordered_map>

#include <fmt/format.h>

#include "ir/clone.h"
#include "ir/compare.h"
#include "ir/infer.h"
#include "rewrite/user_instances.h"
#include "rewrite/user_replace.h"

namespace tokamak {
namespace {

// Plans compared in one run of the pass. Chosen: each costs as much as a compilation without rules;
// programs use a rule at fewer shapes than this.
constexpr int64_t kMostPlans = 48;
// Groups replaced in one run of the pass, for each rule. Chosen: with rules that pay, every
// replacement makes the program faster, so only rules applied always reach it.
constexpr int64_t kMostReplaced = 32;
// A replacement is cheaper if it saves at least this share of the time: more than rounding errors
// of sums of predictions.
constexpr double kLeastSaving = 1e-9;

using RuleList = std::vector<std::shared_ptr<const UserRule>>;

// What was decided about a group.
struct GroupVerdict {
  std::string key;
  bool is_accepted = false;
  double before_us = 0, after_us = 0;
  std::string because;
};

struct Script {
  std::vector<bool> conditions;  // results of `when`, in order
  std::vector<GroupVerdict> verdicts;
};

void Order(Module& module) {
  for (const auto& computation : module.computations()) computation->PutInOrder();
}

// Replaces every instance of a group; the number replaced.
size_t ReplaceGroup(Module& module, const RuleGroup& group) {
  UserReplacer replacer(*group.instance->pair.replacement->entry(), module);
  size_t count = 0;
  for (const UserMatch& match : group.matches) {
    auto is_removed = [](const Instr* instr) { return instr->is_removed(); };
    if (std::ranges::any_of(match.roots, is_removed) ||
        std::ranges::any_of(match.variables, is_removed))
      continue;
    count += replacer.Replace(match) ? 1 : 0;
  }
  return count;
}

Status Tidy(Module& module, RuleHost& host) {
  Order(module);
  TOK_RETURN_IF_ERROR(host.Clean(module));
  Order(module);
  return Ok();
}

// Asks the user's condition and records the answers.
class AskingCondition final : public RuleCondition {
 public:
  explicit AskingCondition(std::vector<bool>& answers) : answers_(answers) {}
  Result<bool> Holds(const UserRule& rule, const RuleInstance& instance,
                     const UserMatch& match) override {
    if (rule.functions == nullptr || !rule.functions->HasWhen()) return true;
    TOK_TRY(bool holds, rule.functions->When(FactsOf(rule, instance, match)));
    answers_.push_back(holds);
    return holds;
  }

 private:
  std::vector<bool>& answers_;
};

// Repeats recorded answers.
class KnownCondition final : public RuleCondition {
 public:
  explicit KnownCondition(const std::vector<bool>& answers) : answers_(answers) {}
  Result<bool> Holds(const UserRule& rule, const RuleInstance&, const UserMatch&) override {
    if (rule.functions == nullptr || !rule.functions->HasWhen()) return true;
    return next_ < answers_.size() && answers_[next_++];
  }

 private:
  const std::vector<bool>& answers_;
  size_t next_ = 0;
};

// Rules to leave out, and why.
struct Culprits {
  std::vector<const UserRule*> rules;
  Error error;
};

class RuleTrial {
 public:
  RuleTrial(std::unique_ptr<Module> module, const RuleList& rules, RuleInstances& instances,
            RuleHost& host, int64_t stage)
      : module_(std::move(module)),
        rules_(rules),
        instances_(instances),
        host_(host),
        stage_(stage),
        closed_(host.Rejected()) {}

  // The verdicts, or the rules that prevent them.
  std::optional<Culprits> Run(Script& script) {
    seen_.emplace(StructuralHash(*module_), 0);
    for (;;) {
      std::optional<RuleFailure> failed;
      AskingCondition condition(script.conditions);
      RuleGroup group = FindRuleGroup(*module_, rules_, instances_, closed_, condition, failed);
      if (failed) return Culprits{{failed->rule}, std::move(failed->error)};
      if (group.rule == nullptr) return std::nullopt;
      GroupVerdict verdict{.key = group.key, .because = {}};
      if (std::optional<Culprits> culprits = Decide(group, verdict)) return culprits;
      if (!verdict.is_accepted) closed_.insert(verdict.key);
      script.verdicts.push_back(std::move(verdict));
    }
  }

 private:
  std::optional<Culprits> Decide(const RuleGroup& group, GroupVerdict& verdict) {
    const UserRule& rule = *group.rule;
    if (rule.when_cheaper && plans_ >= kMostPlans) {
      verdict.because = fmt::format("{} plans were compared already", plans_);
      return std::nullopt;
    }
    std::unique_ptr<Module> before = CloneModule(*module_);
    std::string instances = fmt::format("{} instance{} of ({})", group.matches.size(),
                                        group.matches.size() == 1 ? "" : "s",
                                        VariablesText(*group.instance->pair.pattern->entry()));
    size_t count = ReplaceGroup(*module_, group);
    Status tidied = Tidy(*module_, host_);
    if (tidied.ok()) tidied = VerifyModule(*module_);
    if (!tidied.ok()) return Culprits{{&rule}, std::move(tidied.error())};
    if (count == 0) {
      verdict.because = instances + ": an annotation of the program would be lost";
    } else {
      verdict.because = instances;
      verdict.is_accepted = !rule.when_cheaper || Pays(*before, verdict);
    }
    if (verdict.is_accepted) return CheckEnd(rule);
    module_ = std::move(before);
    return std::nullopt;
  }

  bool Pays(const Module& before, GroupVerdict& verdict) {
    if (!current_us_) {
      Result<double> us = host_.EstimateUs(before, stage_);
      ++plans_;
      if (!us.ok()) {
        verdict.because += ": the program cannot be planned: " + us.error().message;
        return false;
      }
      current_us_ = us.value();
    }
    Result<double> after = host_.EstimateUs(*module_, stage_);
    ++plans_;
    if (!after.ok()) {
      verdict.because += ": the result cannot be planned: " + after.error().message;
      return false;
    }
    verdict.before_us = *current_us_;
    verdict.after_us = after.value();
    if (after.value() >= *current_us_ * (1 - kLeastSaving)) {
      verdict.because += ": not cheaper";
      return false;
    }
    current_us_ = after.value();
    return true;
  }

  // Rules that produce a program again undo each other; so do, at the latest, those still firing at
  // the limit.
  std::optional<Culprits> CheckEnd(const UserRule& rule) {
    if (!rule.when_cheaper) current_us_.reset();
    fired_.push_back(&rule);
    auto [it, is_new] = seen_.emplace(StructuralHash(*module_), fired_.size());
    bool at_limit = fired_.size() >= static_cast<size_t>(kMostReplaced) * rules_.size() * 4 ||
                    std::ranges::count(fired_, &rule) > kMostReplaced * 4;
    if (is_new && !at_limit) return std::nullopt;
    size_t from = is_new ? fired_.size() - std::min<size_t>(fired_.size(), 8) : it->second;
    Culprits culprits;
    std::string names;
    for (size_t i = from; i < fired_.size(); ++i) {
      if (std::ranges::count(culprits.rules, fired_[i]) > 0) continue;
      culprits.rules.push_back(fired_[i]);
      names += (names.empty() ? "" : ", ") + fired_[i]->name;
    }
    culprits.error =
        MakeError(ErrorCode::kRuleNeverEnds,
                  culprits.rules.size() == 1
                      ? fmt::format("rule {}: it applies to its own result without end", names)
                      : fmt::format("rules {}: they undo each other", names),
                  culprits.rules.front()->where);
    return culprits;
  }

  std::unique_ptr<Module> module_;
  const RuleList& rules_;
  RuleInstances& instances_;
  RuleHost& host_;
  int64_t stage_;
  std::set<std::string> closed_;
  std::unordered_map<uint64_t, size_t> seen_;  // hash of the program: rules fired before it
  std::vector<const UserRule*> fired_;
  std::optional<double> current_us_;
  int64_t plans_ = 0;
};

void RecordGroup(const RuleGroup& group, const GroupVerdict& verdict, PassContext& context) {
  for (const UserMatch& match : group.matches) {
    const Instr& root = *match.roots[0];
    context.log.Add({.pass = context.pass,
                     .rule = group.rule->label,
                     .verdict = verdict.is_accepted ? Verdict::kAccepted : Verdict::kRejected,
                     .subject = LabelOf(root),
                     .origins = root.origins(),
                     .before_us = verdict.before_us,
                     .after_us = verdict.after_us,
                     .because = verdict.because});
  }
}

// Follows the verdicts of a trial.
Result<Changed> Follow(Module& module, const Script& script, const RuleList& rules,
                       RuleInstances& instances, RuleHost& host, PassContext& context) {
  std::set<std::string>& closed = host.Rejected();
  KnownCondition condition(script.conditions);
  Changed changed = Changed::kNo;
  for (const GroupVerdict& verdict : script.verdicts) {
    std::optional<RuleFailure> failed;
    RuleGroup group = FindRuleGroup(module, rules, instances, closed, condition, failed);
    // The rest of a trial that cannot be reproduced is not applied: every step is complete.
    if (failed || group.key != verdict.key) break;
    RecordGroup(group, verdict, context);
    if (!verdict.is_accepted) {
      closed.insert(verdict.key);
      continue;
    }
    ReplaceGroup(module, group);
    TOK_RETURN_IF_ERROR(Tidy(module, host));
    changed = Changed::kYes;
  }
  return changed;
}

void LeaveOut(const Culprits& culprits, RuleList& rules, const Module& module, RuleHost& host,
              PassContext& context) {
  for (size_t i = 0; i < culprits.rules.size(); ++i) {
    const UserRule* culprit = culprits.rules[i];
    if (i == 0) host.Warn(*culprit, culprits.error);
    host.LeaveOut(*culprit);
    context.log.Add({.pass = context.pass,
                     .rule = culprit->label,
                     .verdict = Verdict::kRejected,
                     .subject = module.name(),
                     .because = fmt::format("left out: {}: {}", CodeText(culprits.error.code),
                                            culprits.error.message)});
  }
  std::erase_if(
      rules, [&](const auto& rule) { return std::ranges::count(culprits.rules, rule.get()) > 0; });
}

// Whether anything matches, before a trial is begun.
bool AnyMatches(Module& module, const RuleList& rules, RuleInstances& instances,
                const std::set<std::string>& closed) {
  class Always final : public RuleCondition {
    Result<bool> Holds(const UserRule&, const RuleInstance&, const UserMatch&) override {
      return true;
    }
  } always;
  std::optional<RuleFailure> failed;
  return FindRuleGroup(module, rules, instances, closed, always, failed).rule != nullptr || failed;
}

}  // namespace

Result<Changed> ApplyUserRules(Module& module, RuleHost& host, PassContext& context) {
  RuleList rules = host.Rules();
  int64_t stage = host.NextStage();
  if (rules.empty() || module.entry() == nullptr) return Changed::kNo;
  std::ranges::stable_sort(rules, [](const auto& a, const auto& b) {
    return a->priority != b->priority ? a->priority > b->priority : a->id < b->id;
  });
  Order(module);
  RuleInstances instances(host, stage);
  while (!rules.empty() && AnyMatches(module, rules, instances, host.Rejected())) {
    Script script;
    std::optional<Culprits> culprits =
        RuleTrial(CloneModule(module), rules, instances, host, stage).Run(script);
    if (!culprits) return Follow(module, script, rules, instances, host, context);
    LeaveOut(*culprits, rules, module, host, context);
  }
  return Changed::kNo;
}

}  // namespace tokamak
