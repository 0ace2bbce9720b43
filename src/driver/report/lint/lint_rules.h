#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tokamak {

// A rule of `tokamak lint`: one row of lint_rules.def.
struct LintRule {
  std::string_view name;     // "lint.unrolled-loop"
  std::string_view meaning;  // one line
  std::string_view why;      // why it costs
  std::string_view instead;  // what to write
  std::string_view example;  // lines of Python
};

std::span<const LintRule> AllLintRules();
// The words of a comma-separated list of rules, without spaces around them; none is empty.
std::vector<std::string_view> LintWordsOf(std::string_view list);
// Null if there is no rule of this name; "lint." may be left out.
const LintRule* FindLintRule(std::string_view name);
// The page of a rule, as `tokamak explain lint.RULE` prints it.
std::string TextOf(const LintRule& rule);

}  // namespace tokamak
