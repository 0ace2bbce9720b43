#pragma once

#include <span>
#include <string>
#include <string_view>

#include "explain/rules.h"
#include "fusion/plan.h"
#include "support/result.h"

namespace tokamak {

// "none", "rules", "greedy" or "search". TK6107 for anything else.
Result<FusionMode> ParseFusionMode(std::string_view text);
std::string_view NameOf(FusionMode mode);

// The factors of rules.def that are to be left out, by name, with or without "xla.": an unknown
// one, and a law, which cannot be left out, are errors.
Result<LiftedRules> ParseLifted(std::span<const std::string> names);
// The same of "concat-multi-user,expensive-op".
Result<LiftedRules> ParseLifted(std::string_view names);

}  // namespace tokamak
