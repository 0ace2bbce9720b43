#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "explain/rules.h"
#include "fusion/plan.h"
#include "rewrite/pipeline.h"
#include "support/result.h"

namespace tokamak {

// "a,b": its words, those that are empty left out.
std::vector<std::string> WordsOf(std::string_view text, char separator);

// "none", "rules", "greedy" or "search". TK6107 for anything else.
Result<FusionMode> ParseFusionMode(std::string_view text);
// "fast", "default" or "max". TK6107 for anything else.
Result<Effort> ParseEffort(std::string_view text);

// The factors of rules.def that are to be left out, by name, with or without "xla.": an unknown
// one, and a law, which cannot be left out, are errors.
Result<LiftedRules> ParseLifted(std::span<const std::string> names);
// Passes that are to be left out, by name.
Result<std::vector<Pass>> ParseSkipped(std::span<const std::string> names);

}  // namespace tokamak
