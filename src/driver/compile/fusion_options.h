#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "explain/rules.h"
#include "fusion/plan.h"
#include "rewrite/pipeline.h"
#include "support/result.h"

// Parsers of the fusion options that all frontends share.

namespace tokamak {

// Splits "a,b" at the separator; empty words are dropped.
std::vector<std::string> WordsOf(std::string_view text, char separator);

// "none", "rules", "greedy" or "search". Returns TK6107 for anything else.
Result<FusionMode> ParseFusionMode(std::string_view text);
// "fast", "default" or "max". Returns TK6107 for anything else.
Result<Effort> ParseEffort(std::string_view text);

// Rules of rules.def to disable, by name, with or without "xla.". Unknown rules are errors, and so
// are legality rules, which cannot be disabled.
Result<LiftedRules> ParseLifted(std::span<const std::string> names);
// Passes to skip, by name.
Result<std::vector<Pass>> ParseSkipped(std::span<const std::string> names);

}  // namespace tokamak
