#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "driver/compile/compile_options.h"
#include "driver/compile/target.h"
#include "rewrite/user_rules.h"

// The user's rewrite rules of this process, and their use in one compilation. Rules are made and
// checked in driver/rules.

namespace tokamak {

using UserRules = std::vector<std::shared_ptr<const UserRule>>;

// Rules that apply to every compilation of the process. Thread-safe.
void AddUserRule(std::shared_ptr<const UserRule> rule);
void RemoveUserRule(uint64_t id);  // no effect if it does not exist

// Until the matching LeaveRuleScope, compilations use these rules and no others. Not per thread,
// because JAX compiles on threads of its own. Scopes are nested.
void EnterRuleScope(UserRules rules);
void LeaveRuleScope();

// The rules for a compilation that begins.
UserRules ActiveUserRules();
// Identifies the active rules, for keys of caches of compiled programs; empty: none.
std::string ActiveUserRulesKey();

// Rules in one compilation. The target and the options must outlive it.
class RuleSession final : public RuleHost {
 public:
  // With the active rules and those of the options; nullopt if none apply.
  static std::optional<RuleSession> Of(const Target& target, const CompileOptions& options);

  UserRules Rules() override { return rules_; }
  Status Canonicalize(Module& module, int64_t stage) override;
  std::string PassesKey(int64_t stage) override;
  Status Clean(Module& module) override;
  Result<double> EstimateUs(const Module& module, int64_t stage) override;
  std::set<std::string>& Rejected() override { return rejected_; }
  int64_t NextStage() override { return next_stage_++; }
  void Warn(const UserRule& rule, const Error& error) override;
  void LeaveOut(const UserRule& rule) override {
    std::erase_if(rules_, [&](const auto& one) { return one.get() == &rule; });
  }

 private:
  RuleSession(const Target& target, const CompileOptions& options, UserRules rules)
      : target_(target), options_(options), rules_(std::move(rules)) {}

  const Target& target_;
  const CompileOptions& options_;
  UserRules rules_;
  std::set<std::string> rejected_;
  int64_t next_stage_ = 0;
};

}  // namespace tokamak
