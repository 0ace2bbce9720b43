#pragma once

// Algebraic simplification as a table: a rule is a row with a name, a pattern, a condition and a
// replacement. Each firing is recorded. To add a rule, add a row; see docs/adding_a_rule.md.

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

// Instantiates a pattern with the variables of `match`; null if the shapes do not fit.
Instr* Build(Editor& edit, const m::Pattern& pattern, const m::Match& match);

using Condition = bool (*)(const m::Match& match);
// Builds the replacement of a match (with Editor::Make and similar, which infer shapes). Returns
// null if the rule does not apply; everything created is then discarded.
using RewriteFn = Instr* (*)(Editor& edit, const m::Match& match);

// The replacement of a rule: a pattern, or a function if attributes are involved.
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
  // Checked after the pattern matched; null: always true. Tests types, shapes and users.
  Condition when = nullptr;
  // The body of an HLO computation on which the rule fires. If empty, it is generated from the
  // pattern, once for each element type that its ops accept (elementwise ops and numbers only).
  std::string_view example = {};
  // Computations that the example calls, as HLO text.
  std::string_view called = {};
};

// Rules indexed by the op at their root, in table order: the first that applies wins. The tables
// must outlive the set.
class RuleSet {
 public:
  explicit RuleSet(std::span<const Rule> table);
  explicit RuleSet(std::span<const std::span<const Rule>> tables);
  std::span<const Rule* const> Of(Op op) const {
    auto i = static_cast<size_t>(op);
    return std::span(rules_).subspan(begin_[i], begin_[i + 1] - begin_[i]);
  }
  // All rules, sorted by op; rules of one op are in table order.
  std::span<const Rule* const> all() const { return rules_; }

 private:
  std::vector<const Rule*> rules_;
  std::array<uint16_t, kOpCount + 1> begin_{};  // start of each op's range in rules_
};

// The table of the pass `simplify`: the files of rewrite/rules.
const RuleSet& SimplifyRules();

// Applies rules until none fires: operands first, then the instructions affected by a firing.
// Removes instructions that become unused. Linear in the instructions and firings. Rules that undo
// each other stop at the firing limit with an error (TK3005) that names them.
Result<Changed> ApplyRules(Computation& computation, const RuleSet& rules, PassContext& context);

// ---- conditions shared by many rules

bool IsIntegral(const m::Match& match);  // the root's type is an integer
bool IsPred(const m::Match& match);
bool IsRealType(const m::Match& match);
inline bool HasOneUser(const Instr* instr) {
  return instr->users().size() == 1;
}

}  // namespace tokamak
