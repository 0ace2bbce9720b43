#include "driver/report/explain.h"

#include <cstdio>
#include <cstdlib>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "driver/compile/event_sink.h"
#include "driver/compile/named_options.h"
#include "driver/report/contractions.h"
#include "driver/report/diff_page.h"
#include "driver/report/lint/write_lints.h"
#include "driver/report/page.h"
#include "driver/report/targets.h"
#include "driver/report/trace.h"
#include "driver/report/views.h"
#include "driver/report/write.h"
#include "ir/clone.h"
#include "support/json_text.h"
#include "support/near_names.h"
#include "text/load.h"

namespace tokamak {
namespace {

using nlohmann::json;

Result<std::string> KernelText(const CompileReport& report, const ExplainRequest& request) {
  TOK_TRY(std::vector<KernelView> views, KernelsNamed(report, request.kernel));
  json list = json::array();
  std::string text;
  for (const KernelView& view : views) {
    std::string language = view.language == "cuda" ? "CUDA C++" : "LLVM IR";
    list.push_back({{"name", view.name}, {"form", view.form}, {view.language, view.code}});
    text += fmt::format("// kernel IR\n{}\n", view.form);
    text += view.code.empty() ? "// this build does not generate " + language + "\n"
                              : fmt::format("// {}\n{}\n", language, view.code);
  }
  return request.json ? LineOfJson({{"kernels", std::move(list)}}) : text;
}

Result<CompileReport> ReportOn(std::string_view target, const Module& module,
                               const ExplainRequest& request) {
  TOK_TRY(Target on, TargetNamed(target));
  TOK_TRY(std::shared_ptr<const Compilation> made,
          Compile(CloneModule(module), on, request.compile));
  return ReportOf(std::move(made));
}

Result<std::string> ComparedDevices(const Module& module, const ExplainRequest& request) {
  TOK_TRY(CompileReport host, ReportOn("host", module, request));
  TOK_TRY(CompileReport gpu, ReportOn("h200", module, request));
  for (const CompileReport* report : {&host, &gpu})
    if (!report->why_interpreted().empty())
      return "the whole program is interpreted: " + report->why_interpreted() + "\n";
  DeviceComparison comparison = CompareDevices(module, host, gpu);
  return request.json ? LineOfJson(JsonOf(comparison)) : TextOf(comparison);
}

// The answer for a program that only `tokamak run --backend interp` runs, because no buffer can
// hold its results.
Result<std::string> InterpretedText(const std::string& why, const std::string& program,
                                    const ExplainRequest& request) {
  if (request.lints) return LintAnswer(LintsOfInterpreted(why, request.lint), request.json);
  json data = {{"target", request.target}, {"interpreted", why}};
  json trace = {{"traceEvents", json::array()}, {"otherData", data}};
  if (!request.write_trace.empty())
    TOK_RETURN_IF_ERROR(WriteFileBytes(request.write_trace, LineOfJson(trace)));
  if (request.trace) return LineOfJson(trace);
  if (request.html) return PageOf(program, data);
  if (request.json) return LineOfJson(data);
  return "the whole program is interpreted: " + why + "\n";
}

// A compilation, or why there is none: no buffer can hold the results, so only the interpreter runs
// the program.
struct RequestedCompilation {
  std::shared_ptr<const Compilation> made;
  std::string why_none;
};

Result<RequestedCompilation> CompileRequested(std::unique_ptr<Module> module,
                                              const ExplainRequest& request) {
  TOK_TRY(Target target, TargetOf(request));
  Result<std::shared_ptr<const Compilation>> made =
      Compile(std::move(module), target, request.compile);
  if (made.ok()) return RequestedCompilation{std::move(made.value()), ""};
  if (made.error().code != ErrorCode::kUnsupportedResult || request.compile.require_kernels)
    return std::move(made.error());
  return RequestedCompilation{nullptr, std::move(made.error().message)};
}

}  // namespace

std::string LineOfJson(const json& value) {
  return JsonText(value) + "\n";
}

Result<Target> TargetOf(const ExplainRequest& request) {
  bool for_gpu = request.target != "host";
  return for_gpu && !request.device.empty() ? TargetOfBackend(request.device)
                                            : TargetNamed(request.target);
}

Result<std::string> Explained(std::unique_ptr<Module> module, const ExplainRequest& request) {
  if (!request.targets.empty() && request.html)
    return MakeError(ErrorCode::kOptionValue, "explain: html: a page shows one target");
  if (!request.targets.empty()) return ComparedDevices(*module, request);
  bool looks_before = request.kernel.empty() && !request.dot && !request.trace;
  std::unique_ptr<Module> before = looks_before ? CloneModule(*module) : nullptr;
  std::string name = module->name();
  TOK_TRY(RequestedCompilation compiled, CompileRequested(std::move(module), request));
  if (compiled.made == nullptr) return InterpretedText(compiled.why_none, name, request);
  if (!request.write_plan.empty())
    TOK_RETURN_IF_ERROR(WriteFileBytes(request.write_plan, ToJson(PlanOf(*compiled.made))));
  return Explained(std::move(compiled.made), request, before.get());
}

Result<std::string> Explained(std::shared_ptr<const Compilation> compilation,
                              const ExplainRequest& request, const Module* before) {
  TOK_TRY(CompileReport report, ReportOf(std::move(compilation), request.report));
  return Explained(std::move(report), request, before);
}

Result<std::string> Explained(CompileReport report, const ExplainRequest& request,
                              const Module* before) {
  const Compilation& made = *report.compilation;
  if (before != nullptr && request.compare && !request.lints)
    TOK_RETURN_IF_ERROR(AddComparisons(report, *before));
  if (request.trace || !request.write_trace.empty()) {
    std::string trace = LineOfJson(TraceOf(report));
    if (!request.write_trace.empty())
      TOK_RETURN_IF_ERROR(WriteFileBytes(request.write_trace, trace));
    if (request.trace) return trace;
  }
  if (!request.kernel.empty()) return KernelText(report, request);
  if (request.dot) {
    std::string dot = DotOf(report, made.module->name());
    return request.json ? LineOfJson({{"dot", dot}}) : dot;
  }
  Lints lints = LintsOf(report, before, request.lint);
  if (request.lints) return LintAnswer(lints, request.json);
  Records records = !request.decisions ? Records::kNone
                    : request.rewrites ? Records::kAll
                                       : Records::kOfKernels;
  std::vector<ContractionReport> contractions;
  bool lists = request.contractions && report.why_interpreted().empty();
  if (lists) {
    TOK_TRY(contractions, ContractionsOf(report, request.report));
  }
  if (!request.json && !request.html)
    return TextOf(report, records) + (lists ? TextOf(contractions) : "") +
           TextOf(lints, /*notes=*/false);
  json out = JsonOf(report, made.target.name);
  if (lists) out["contractions"] = JsonOf(contractions);
  out["lints"] = JsonOf(lints);
  if (request.html)
    return PageOf(made.module->name(), WithPageData(report, std::move(out), request.page));
  return LineOfJson(out);
}

Result<Lints> LintsOfProgram(std::unique_ptr<Module> module, const ExplainRequest& request) {
  std::unique_ptr<Module> before = CloneModule(*module);
  TOK_TRY(RequestedCompilation compiled, CompileRequested(std::move(module), request));
  if (compiled.made == nullptr) return LintsOfInterpreted(compiled.why_none, request.lint);
  TOK_TRY(CompileReport report, ReportOf(std::move(compiled.made), request.report));
  return LintsOf(report, before.get(), request.lint);
}

Result<std::string> ExplainedDiff(DiffSide a, DiffSide b) {
  std::vector<CompileReport> reports;
  for (DiffSide* side : {&a, &b}) {
    TOK_TRY(Target target, TargetOf(side->request));
    TOK_TRY(std::shared_ptr<const Compilation> made,
            Compile(std::move(side->module), target, side->request.compile));
    TOK_TRY(CompileReport report, ReportOf(std::move(made), side->request.report));
    if (!report.why_interpreted().empty())
      return MakeError(ErrorCode::kNoKernel,
                       "explain: " + side->name +
                           ": the whole program is interpreted: " + report.why_interpreted());
    reports.push_back(std::move(report));
  }
  if (a.request.html) return DiffPage(reports[0], reports[1], a.name, b.name);
  if (a.request.json) return LineOfJson(DiffJson(reports[0], reports[1], a.name, b.name));
  return DiffText(reports[0], reports[1], a.name, b.name);
}

void ExplainCompilation(const std::shared_ptr<const Compilation>& compilation) {
  const char* asked = std::getenv("TOKAMAK_DEBUG");
  std::string_view word = asked == nullptr ? "" : asked;
  if (word != "explain" && word != "decisions") return;
  ExplainRequest request;
  request.decisions = word == "decisions";
  Result<std::string> output = Explained(compilation, request, nullptr);
  std::string text = output.ok() ? std::move(output.value()) : output.error().message + "\n";
  const std::string& name = compilation->module->name();
  if (HasEventSink()) {
    EmitEvent(json{{"event", "explain"}, {"name", name}, {"text", text}});
  } else {
    std::fputs((name + ":\n" + text).c_str(), stderr);
  }
}

bool IsTrue(std::string_view value) {
  return value == "true" || value == "True" || value == "1";
}

Status SetExplainOption(ExplainRequest& request, std::string_view name, const std::string& value) {
  bool truth = IsTrue(value);
  if (name == "target") {
    if (value == "host" || value == "h200") {
      request.target = value;
    } else if (value == "host,h200") {
      request.targets = value;
    } else {
      return MakeError(
          ErrorCode::kOptionValue,
          "explain: target: " + NoneOf(value, {"host", "h200"}) + " (or both: host,h200)");
    }
  } else if (name == "json") {
    request.json = truth;
  } else if (name == "decisions") {
    request.decisions = truth;
  } else if (name == "compare") {
    request.compare = truth;
  } else if (name == "dot") {
    request.dot = truth;
  } else if (name == "html") {
    request.html = request.page.code = truth;
  } else if (name == "code") {
    request.page.code = truth;
  } else if (name == "trace") {
    request.trace = truth;
  } else if (name == "lints") {
    request.lints = truth;
  } else if (name == "lint_rules") {
    return AddLintRules(request.lint.rules, value, "explain: lint_rules");
  } else if (name == "lint_ignore") {
    return AddLintRules(request.lint.ignore, value, "explain: lint_ignore");
  } else if (name == "lint_suppressions") {
    request.lint.suppressions = truth;
  } else if (name == "contractions") {
    request.contractions = truth;
  } else if (name == "kernel") {
    request.kernel = value;
  } else {
    TOK_RETURN_IF_ERROR(SetOption(request.compile, name, value));
  }
  return Ok();
}

}  // namespace tokamak
