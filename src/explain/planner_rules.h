#pragma once

#include <span>
#include <string_view>

namespace tokamak {

// Rules of the planner and of lowering, as `tokamak explain RULE` describes them: one
// row each in planner_rules.def.
struct PlannerRuleInfo {
  std::string_view name;       // "loop.fuse", as in records
  std::string_view meaning;    // one line
  std::string_view paragraph;  // for `tokamak explain RULE`
};

std::span<const PlannerRuleInfo> AllPlannerRules();
// Null if there is no rule of this name.
const PlannerRuleInfo* FindPlannerRule(std::string_view name);

}  // namespace tokamak
