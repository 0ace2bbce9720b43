#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "driver/executable.h"
#include "explain/rules.h"
#include "fusion/plan.h"
#include "rewrite/pipeline.h"
#include "support/result.h"

namespace tokamak {

// How the paper's passes run.
struct PaperOptions {
  LiftedRules lifted;      // rules that are left out
  std::vector<Pass> skip;  // passes that are
};

struct FusionChoice {
  FusionMode mode = FusionMode::kSearch;
  Effort effort = Effort::kDefault;
  PaperOptions paper;
  PinWords pins;
};

// From the words of --fusion, --lift and --skip.
Result<FusionChoice> ParseFusion(std::string_view mode, std::span<const std::string> lift,
                                 std::span<const std::string> skip);

// From the options of a compilation.
Result<FusionChoice> FusionOf(const CompileOptions& options);

// "none", "rules", "greedy" or "search". TK6107 for anything else.
Result<FusionMode> ParseFusionMode(std::string_view text);
std::string_view NameOf(FusionMode mode);
// "fast", "default" or "max". TK6107 for anything else.
Result<Effort> ParseEffort(std::string_view text);

// The factors of rules.def that are to be left out, by name, with or without "xla.": an unknown
// one, and a law, which cannot be left out, are errors.
Result<LiftedRules> ParseLifted(std::span<const std::string> names);
// The same of "concat-multi-user,expensive-op".
Result<LiftedRules> ParseLifted(std::string_view names);

}  // namespace tokamak
