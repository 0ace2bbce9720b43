#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

namespace tokamak {

// The rules of XLA's fusion passes (2023, arXiv 2301.13062), which Tokamak reimplements for
// comparison: one row each in rules.def.
enum class FusionRule : uint8_t {
#define TOK_FUSION_RULE(id, ...) k##id,
#include "explain/rules.def"
};

enum class RuleKind : uint8_t { kMove, kFactor, kLegality };

struct FusionRuleInfo {
  std::string_view name;  // "xla.expensive-op", as in records
  RuleKind kind;
  std::string_view meaning;    // one line
  std::string_view paragraph;  // for `tokamak explain RULE`
};

std::span<const FusionRuleInfo> AllFusionRules();
const FusionRuleInfo& InfoOf(FusionRule rule);
// By name, with or without the prefix "xla."; null if there is none.
const FusionRuleInfo* FindFusionRule(std::string_view name);

// The set of disabled rules (--lift).
class LiftedRules {
 public:
  void Lift(FusionRule rule) { bits_ |= uint64_t{1} << static_cast<int>(rule); }
  bool Has(FusionRule rule) const { return (bits_ >> static_cast<int>(rule) & 1) != 0; }

 private:
  uint64_t bits_ = 0;
};

}  // namespace tokamak
