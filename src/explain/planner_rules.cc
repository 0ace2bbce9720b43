#include "explain/planner_rules.h"

#include <algorithm>
#include <iterator>

namespace tokamak {
namespace {

constexpr PlannerRuleInfo kPlannerRules[] = {
#define TOK_PLANNER_RULE(name, meaning, paragraph) {name, meaning, paragraph},
#include "explain/planner_rules.def"
};

}  // namespace

std::span<const PlannerRuleInfo> AllPlannerRules() {
  return kPlannerRules;
}

const PlannerRuleInfo* FindPlannerRule(std::string_view name) {
  const auto* it = std::find_if(std::begin(kPlannerRules), std::end(kPlannerRules),
                                [&](const auto& row) { return row.name == name; });
  return it == std::end(kPlannerRules) ? nullptr : it;
}

}  // namespace tokamak
