#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "driver/report/compile_report.h"
#include "driver/report/lints.h"
#include "driver/report/page_data.h"

namespace tokamak {

// A request to `tokamak explain`, `tokamak lint` or tokamak.explain().
struct ExplainRequest {
  ExplainRequest() { compile.check_memory = false; }  // it would add steps that no user's run has

  std::string target = "host";  // or h200
  std::string device;           // a backend whose present device is the target; empty: none
  CompileOptions compile;
  ReportOptions report;
  bool compare = true;  // with the unfused and with the greedy plan
  bool json = false;
  bool decisions = false;  // include each record in the text; JSON always has them
  bool rewrites = true;    // also records of the passes before fusion; otherwise only their number
  bool lints = false;      // print only the lints
  LintSelection lint;      // which lints
  bool contractions = false;  // also the ways to compute each contraction
  bool dot = false;           // for Graphviz
  bool html = false;          // a page for browsers (page.h)
  PageOptions page;
  bool trace = false;       // a timeline for Perfetto (trace.h)
  std::string write_trace;  // file to write the timeline to, besides; empty: none
  std::string write_plan;   // file to write the plan to; empty: none
  std::string kernel;       // print only this kernel, as kernel IR and as code
  // "host,h200": compares these targets.
  std::string targets;
};

// The target that a request names.
Result<Target> TargetOf(const ExplainRequest& request);
// Compiles a verified program and explains the compilation. The answer ends in a newline.
Result<std::string> Explained(std::unique_ptr<Module> module, const ExplainRequest& request);
// Explains a compilation. `before`: the original module, for comparisons; may be null.
Result<std::string> Explained(std::shared_ptr<const Compilation> compilation,
                              const ExplainRequest& request, const Module* before);
// Explains a report. `request.report` serves only the contractions, which are measured apart.
Result<std::string> Explained(CompileReport report, const ExplainRequest& request,
                              const Module* before);

// Compiles a verified program and returns its lints. A program that only the interpreter can run is
// a finding, not an error.
Result<Lints> LintsOfProgram(std::unique_ptr<Module> module, const ExplainRequest& request);

// One side of a comparison.
struct DiffSide {
  std::string name;
  std::unique_ptr<Module> module;  // verified
  ExplainRequest request;
};
// Compiles both sides and compares their steps: text, JSON or a page (diff_page.h), as the request
// of the first side says.
Result<std::string> ExplainedDiff(DiffSide a, DiffSide b);

// Whether the text of an option means true.
bool IsTrue(std::string_view value);
// Sets an option such as {"fusion", "rules"}, {"target", "h200"}, {"json", "true"}, or a tokamak_*
// compile option. Returns TK6106 or TK6107. The caller sets the measurer.
Status SetExplainOption(ExplainRequest& request, std::string_view name, const std::string& value);

// TOKAMAK_DEBUG ("explain", or "decisions" for all records): reports a compilation to the event
// sink (driver/compile/event_sink.h) if there is one, otherwise on standard error.
void ExplainCompilation(const std::shared_ptr<const Compilation>& compilation);

// JSON on one line. Invalid UTF-8 is replaced.
std::string LineOfJson(const nlohmann::json& json);

}  // namespace tokamak
