#pragma once

#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "driver/run/compare_arrays.h"
#include "rewrite/user_rules.h"
#include "support/result.h"

// Making rules of users: their texts are read and verified, and pattern and replacement are
// compared on drawn inputs.

namespace tokamak {

// Which inputs a rule is compared on, and how closely.
struct RuleCheck {
  // Reals: |pattern - replacement| <= tolerance * (1 + |pattern|). Unset: kDefaultUlps.
  std::optional<double> tolerance;
  bool nonfinite = false;  // the rule also holds for infinities and NaN
  // Range of the real inputs for which the rule holds.
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
};

struct RuleSpec {
  std::string name;
  TextSpan where;
  int64_t priority = 0;
  bool when_cheaper = true;
  RuleCheck check;
  std::vector<RulePair> examples;
  std::unique_ptr<RuleFunctions> functions;  // may be null
};

// Verifies a rule. Errors: TK3007 (parameters or results differ), TK3008 (values differ), TK3009
// (variables), TK3010 (side effects), TK3011 (the replacement contains the pattern), TK3013 (the
// rule has no name or no example, or is too large).
Result<std::shared_ptr<const UserRule>> MakeUserRule(RuleSpec spec);

// The value check alone: TK3008 with the inputs and both values.
Status CheckRuleValues(const std::string& name, const TextSpan& where, const RulePair& pair,
                       const RuleCheck& check);

// A pair from texts (or bytecode) of two programs. `name` is the file name in errors.
Result<RulePair> ReadRulePair(std::string_view pattern, std::string_view replacement,
                              const std::string& name);

// The rules of a file: programs separated by "// -----", each with functions @pattern and
// @replacement and module attributes tokamak.rule (the name), tokamak.priority,
// tokamak.always, tokamak.tolerance, tokamak.nonfinite, tokamak.low, tokamak.high. Programs with
// the same name are examples of one rule. `warn` receives what goes wrong with a rule while a
// program is compiled. Returns TK3013 or the error of a rule.
Result<std::vector<std::shared_ptr<const UserRule>>> LoadRuleFile(const std::string& path,
                                                                  void (*warn)(const Error&));

}  // namespace tokamak
