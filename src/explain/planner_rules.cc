#include "explain/planner_rules.h"

#include <algorithm>
#include <iterator>

namespace tokamak {
namespace {

constexpr PlannerRuleInfo kRules[] = {
#define TOK_PLANNER_RULE(name, meaning, paragraph) {name, meaning, paragraph},
#include "explain/planner_rules.def"
};

}  // namespace

std::span<const PlannerRuleInfo> AllPlannerRules() {
  return kRules;
}

const PlannerRuleInfo* FindPlannerRule(std::string_view name) {
  const auto* it = std::find_if(std::begin(kRules), std::end(kRules),
                                [&](const auto& row) { return row.name == name; });
  return it == std::end(kRules) ? nullptr : it;
}

}  // namespace tokamak
