#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

namespace tokamak {

// The rules of the paper's compiler, rules.def.
enum class FusionRule : uint8_t {
#define TOK_FUSION_RULE(id, ...) k##id,
#include "explain/rules.def"
};

enum class RuleKind : uint8_t { kMove, kFactor, kLaw };

struct FusionRuleInfo {
  std::string_view name;  // "xla.expensive-op", as records have it
  RuleKind kind;
  std::string_view meaning;    // one line
  std::string_view paragraph;  // for `tokamak explain RULE`
};

std::span<const FusionRuleInfo> AllFusionRules();
const FusionRuleInfo& InfoOf(FusionRule rule);
// By its name, with or without "xla."; null: there is none.
const FusionRuleInfo* FindFusionRule(std::string_view name);
// The name that is most like this one, for messages.
std::string_view NearestFusionRule(std::string_view name);

// Factors that are left out.
class LiftedRules {
 public:
  void Lift(FusionRule rule) { bits_ |= uint64_t{1} << static_cast<int>(rule); }
  bool Has(FusionRule rule) const { return (bits_ >> static_cast<int>(rule) & 1) != 0; }

 private:
  uint64_t bits_ = 0;
};

}  // namespace tokamak
