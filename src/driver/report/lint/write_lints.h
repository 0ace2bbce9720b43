#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "driver/report/lints.h"

// Text, JSON and SARIF writers of lints.

namespace tokamak {

// Two lines per warning; with `notes`, also per note.
std::string TextOf(const Lints& lints, bool notes);
// The list of all findings, as docs/lint.md describes it.
nlohmann::json JsonOf(const Lints& lints);
// The findings with the time of a call and the number of those that are suppressed.
nlohmann::json AnswerOf(const Lints& lints);
// The whole answer of `tokamak lint`, as text or as that JSON, on a line.
std::string LintAnswer(const Lints& lints, bool as_json);

// One SARIF 2.1.0 log of the findings of all programs of a file.
struct LintedProgram {
  std::string file;
  Lints lints;
};
std::string SarifOf(const std::vector<LintedProgram>& programs);

}  // namespace tokamak
