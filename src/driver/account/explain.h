#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "driver/account/account.h"
#include "driver/account/lints.h"

namespace tokamak {

// What `tokamak explain`, `tokamak lint` and tokamak.explain() are asked.
struct ExplainRequest {
  AccountOptions account;
  bool json = false;
  bool decisions = false;  // each record, in the text; JSON has them always
  bool rewrites = true;    // with them those of the passes before fusion; else their number
  bool lints = false;      // nothing but these
  bool dot = false;        // for Graphviz
  std::string kernel;      // this one alone, as kernel form and as code
  // "host,h200": where it is faster.
  std::string targets;
};

// Explains a program that was verified; the module is used up. The answer ends in a newline.
Result<std::string> Explained(Module& module, const ExplainRequest& request);

// Sets what {"fusion", "rules"}, {"target", "h200"}, {"json", "true"} ask for, and tokamak_* as
// compilations have them. TK6106, TK6107.
Status SetExplainOption(ExplainRequest& request, CompileOptions& compile, std::string_view name,
                        const std::string& value);

// What TOKAMAK_DEBUG asks for ("explain", or "decisions" for all records): what becomes of a
// program that is being compiled, as a report to whoever listens (driver/report.h), else on
// standard error.
void ExplainCompilation(const Module& module, const CompileOptions& options);

// JSON in one line. Bytes that are not UTF-8 are replaced.
std::string LineOfJson(const nlohmann::json& json);

}  // namespace tokamak
