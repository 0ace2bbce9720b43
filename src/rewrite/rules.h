#pragma once

// Algebra as a table: a rule is a row with a name, a pattern, a condition and what stands in its
// place. Each firing is a record. Adding a rule is adding a row: docs/adding_a_rule.md.

#include <array>
#include <concepts>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "rewrite/editor.h"
#include "rewrite/match.h"
#include "rewrite/pass.h"

namespace tokamak {

// What a pattern with the variables of `match` stands for; null where it does not fit.
Instr* Build(Editor& edit, const m::Pattern& pattern, const m::Match& match);

using Condition = bool (*)(const m::Match& match);
// Makes what stands in the place of the match (Editor::Make and the like, which infer shapes), or
// gives null: the rule does not apply then, and nothing is left behind.
using RewriteFn = Instr* (*)(Editor& edit, const m::Match& match);

// What a rule puts in the place of its match: a pattern, or a function for what needs attributes.
class Replacement {
 public:
  constexpr Replacement(m::Var var) : pattern_(var) {}
  constexpr Replacement(m::Pattern pattern) : pattern_(pattern) {}
  template <typename F>
  requires std::convertible_to<F, RewriteFn>
  constexpr Replacement(F function) : pattern_(m::x), function_(function) {}

  Instr* Apply(Editor& edit, const m::Match& match) const {
    return function_ != nullptr ? function_(edit, match) : Build(edit, pattern_, match);
  }

 private:
  m::Pattern pattern_;
  RewriteFn function_ = nullptr;
};

struct Rule {
  std::string_view name;     // "add.zero": topic.reason, unique
  std::string_view meaning;  // one line: "x + 0 is x"
  m::Pattern pattern;        // its root is an op
  Replacement replacement;
  // Asked after the pattern matched; null: always. What it must hold for: types, shapes, users.
  Condition when = nullptr;
  // The body of an HLO computation on which the rule fires. "": made from the pattern, once for
  // each element type that its ops take (elementwise ops and numbers only).
  std::string_view example = {};
  // Holds for real numbers, not for floating-point ones: off unless PassOptions::fast_math.
  bool fast_math = false;
  // Computations that the example calls, as HLO text.
  std::string_view called = {};
};

// Rules by the op at their root, in the order of the tables: the first that applies is taken. The
// tables stay where they are and must outlive it.
class RuleSet {
 public:
  explicit RuleSet(std::span<const Rule> table);
  explicit RuleSet(std::span<const std::span<const Rule>> tables);
  std::span<const Rule* const> Of(Op op) const {
    auto i = static_cast<size_t>(op);
    return std::span(rules_).subspan(begin_[i], begin_[i + 1] - begin_[i]);
  }
  // Of all ops, those of an op in the order of the tables.
  std::span<const Rule* const> all() const { return rules_; }

 private:
  std::vector<const Rule*> rules_;
  std::array<uint16_t, kOpCount + 1> begin_{};  // of an op, among rules_
};

// The table of the pass `simplify`: the files of rewrite/rules.
const RuleSet& SimplifyRules();

// Applies rules until none fires: operands first, then whatever a firing touched. What becomes
// unused is removed. Linear in the instructions and firings. Rules that undo each other stop at the
// limit of firings: an error (TK3005) that names them.
Result<Changed> ApplyRules(Computation& computation, const RuleSet& rules, PassContext& context);

// ---- conditions that many rules have

bool IsIntegral(const m::Match& match);        // the root's type is an integer
bool IsIntegralOrPred(const m::Match& match);  // ... or pred
bool IsPred(const m::Match& match);
bool IsFloating(const m::Match& match);  // real or complex
bool IsRealType(const m::Match& match);
inline bool HasOneUser(const Instr* instr) {
  return instr->users().size() == 1;
}

}  // namespace tokamak
