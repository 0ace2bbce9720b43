#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "rewrite/user_match.h"
#include "rewrite/user_rules.h"

namespace tokamak {

// A rule for fixed shapes of its variables, after the passes that the program has undergone.
struct RuleInstance {
  RulePair pair;
  std::vector<const Instr*> kept;  // instructions of the pattern that the replacement keeps
};

// The instances of rules at one stage of one compilation, made on demand.
class RuleInstances {
 public:
  RuleInstances(RuleHost& host, int64_t stage) : host_(host), stage_(stage) {}

  // The examples of a rule, without those that look alike at any shape.
  const std::vector<const RuleInstance*>& ExamplesOf(const UserRule& rule);
  // The rule for these shapes; null if it has no form for them.
  Result<const RuleInstance*> For(const UserRule& rule, const std::vector<Shape>& variables);

 private:
  Result<std::optional<RulePair>> OtherPair(const UserRule& rule,
                                            const std::vector<Shape>& variables);
  std::shared_ptr<const RuleInstance> Canonical(RulePair pair);
  const std::string& PassesKey();

  RuleHost& host_;
  int64_t stage_;
  std::optional<std::string> passes_key_;  // host_.PassesKey(stage_)
  std::map<uint64_t, std::vector<const RuleInstance*>> examples_;
  std::map<std::string, std::shared_ptr<const RuleInstance>>
      made_;  // by rule and shapes; null: none
  std::map<uint64_t, int64_t> traced_;
};

// Instances of one rule with equal shapes in one computation: one decision is made for them.
struct RuleGroup {
  const UserRule* rule = nullptr;
  const RuleInstance* instance = nullptr;
  std::string key;
  Computation* computation = nullptr;
  std::vector<UserMatch> matches;  // users before operands; they do not overlap
};

// Decides whether the user's condition holds for a match.
class RuleCondition {
 public:
  virtual Result<bool> Holds(const UserRule& rule, const RuleInstance& instance,
                             const UserMatch& match) = 0;

 protected:
  ~RuleCondition() = default;
};

struct RuleFailure {
  const UserRule* rule;
  Error error;
};

// Finds the first group in order of priority whose key is not in `closed`. An empty group: there is
// none. `failed` is set if a function of a rule failed.
RuleGroup FindRuleGroup(Module& module, const std::vector<std::shared_ptr<const UserRule>>& rules,
                        RuleInstances& instances, const std::set<std::string>& closed,
                        RuleCondition& condition, std::optional<RuleFailure>& failed);

// The facts of a match, for a condition.
MatchFacts FactsOf(const UserRule& rule, const RuleInstance& instance, const UserMatch& match);

}  // namespace tokamak
