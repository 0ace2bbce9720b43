#include "explain/rules.h"

#include <algorithm>

namespace tokamak {
namespace {

using enum RuleKind;

constexpr FusionRuleInfo kFusionRules[] = {
#define TOK_FUSION_RULE(id, name, kind, meaning, paragraph) {name, kind, meaning, paragraph},
#include "explain/rules.def"
};
static_assert(std::size(kFusionRules) <= 64, "LiftedRules has a bit for each");

std::string_view ReasonOf(std::string_view name) {
  return name.substr(name.find('.') + 1);
}

}  // namespace

std::span<const FusionRuleInfo> AllFusionRules() {
  return kFusionRules;
}

const FusionRuleInfo& InfoOf(FusionRule rule) {
  return kFusionRules[static_cast<size_t>(rule)];
}

const FusionRuleInfo* FindFusionRule(std::string_view name) {
  const auto* it =
      std::find_if(std::begin(kFusionRules), std::end(kFusionRules),
                   [&](const auto& row) { return row.name == name || ReasonOf(row.name) == name; });
  return it == std::end(kFusionRules) ? nullptr : it;
}

}  // namespace tokamak
