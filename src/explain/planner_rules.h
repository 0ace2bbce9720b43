#pragma once

#include <span>
#include <string_view>

namespace tokamak {

// A rule of the planner or of lowering, or a lint: planner_rules.def.
struct PlannerRuleInfo {
  std::string_view name;       // "lower.rounds", as records have it
  std::string_view meaning;    // one line
  std::string_view paragraph;  // for `tokamak explain RULE`
};

std::span<const PlannerRuleInfo> AllPlannerRules();
// Null: there is none of this name.
const PlannerRuleInfo* FindPlannerRule(std::string_view name);

}  // namespace tokamak
