#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "driver/account/account.h"
#include "driver/account/lints.h"

namespace tokamak {

// What `tokamak explain`, `tokamak lint` and tokamak.explain() are asked.
struct ExplainRequest {
  ExplainRequest() { compile.check_memory = false; }  // which adds steps that no user's run has

  std::string target = "host";  // or h200
  std::string device;           // a backend: its device, present, is the target; "": none
  CompileOptions compile;
  AccountOptions account;
  bool compare = true;  // with one kernel for each instruction, and with tier 0
  bool json = false;
  bool decisions = false;  // each record, in the text; JSON has them always
  bool rewrites = true;    // with them those of the passes before fusion; else their number
  bool lints = false;      // nothing but these
  bool dot = false;        // for Graphviz
  std::string write_plan;  // a file that the plan is written to; "": none
  std::string kernel;      // this one alone, as kernel form and as code
  // "host,h200": where it is faster.
  std::string targets;
};

// What a request is about: the target that it names.
Result<Target> TargetOf(const ExplainRequest& request);
// Compiles a program that was verified, and explains that. The answer ends in a newline.
Result<std::string> Explained(std::unique_ptr<Module> module, const ExplainRequest& request);
// Explains a compilation. `before`: the module as it was, to compare with; null: there is none.
Result<std::string> Explained(std::shared_ptr<const Compilation> compilation,
                              const ExplainRequest& request, const Module* before);

// Sets what {"fusion", "rules"}, {"target", "h200"}, {"json", "true"} ask for, and tokamak_* as
// compilations have them. TK6106, TK6107.
Status SetExplainOption(ExplainRequest& request, std::string_view name, const std::string& value);

// What TOKAMAK_DEBUG asks for ("explain", or "decisions" for all records): what became of a
// program that was compiled, as a report to whoever listens (driver/report.h), else on
// standard error.
void ExplainCompilation(const std::shared_ptr<const Compilation>& compilation);

// JSON in one line. Bytes that are not UTF-8 are replaced.
std::string LineOfJson(const nlohmann::json& json);

}  // namespace tokamak
