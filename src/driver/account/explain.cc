#include "driver/account/explain.h"

#include <cstdio>
#include <cstdlib>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "driver/account/targets.h"
#include "driver/account/views.h"
#include "driver/account/write.h"
#include "driver/all_kernels.h"
#include "driver/named_options.h"
#include "driver/report.h"
#include "ir/clone.h"

namespace tokamak {
namespace {

using nlohmann::json;

constexpr size_t kExplainShownLines = 6;

Result<std::string> KernelText(const ProgramAccount& account, const ExplainRequest& request) {
  TOK_TRY(std::vector<KernelView> views, KernelsNamed(account, request.kernel));
  json list = json::array();
  std::string text;
  for (const KernelView& view : views) {
    std::string language = view.language == "cuda" ? "CUDA C++" : "LLVM IR";
    list.push_back({{"name", view.name}, {"form", view.form}, {view.language, view.code}});
    text += fmt::format("// kernel form\n{}\n", view.form);
    text += view.code.empty() ? "// this build makes no " + language + "\n"
                              : fmt::format("// {}\n{}\n", language, view.code);
  }
  return request.json ? LineOfJson({{"kernels", std::move(list)}}) : text;
}

std::string TextOf(const std::vector<Lint>& lints) {
  std::string text;
  for (const Lint& lint : lints) {
    std::string where =
        lint.lines.empty() ? "the program" : ShortList(lint.lines, kExplainShownLines);
    text += fmt::format("{}  {} us  {}\n           {}\n", lint.rule, NumberText(lint.us), where,
                        lint.text);
  }
  return text;
}

std::string SumOf(const Lints& lints) {
  double us = 0;
  for (const Lint& lint : lints.all) us += lint.us;
  return fmt::format("{} of the {} us that a call takes\n", NumberText(us),
                     NumberText(lints.call_us));
}

json JsonOf(const std::vector<Lint>& lints) {
  json list = json::array();
  for (const Lint& lint : lints)
    list.push_back(
        {{"rule", lint.rule}, {"lines", lint.lines}, {"us", lint.us}, {"text", lint.text}});
  return list;
}

Result<std::string> ComparedPlaces(Module& module, const ExplainRequest& request) {
  std::unique_ptr<Module> copy = CloneModule(module);
  AccountOptions options = request.account;
  options.compare = options.measure = false;
  options.target = "host";
  TOK_TRY(std::unique_ptr<ProgramAccount> host, AccountOf(module, options));
  options.target = "h200";
  TOK_TRY(std::unique_ptr<ProgramAccount> gpu, AccountOf(*copy, options));
  for (const auto* account : {&host, &gpu})
    if (!(*account)->why_interpreted.empty())
      return "the interpreter runs all of it: " + (*account)->why_interpreted + "\n";
  Places places = PlacesOf(module, *host, *gpu);
  return request.json ? LineOfJson(JsonOf(places)) : TextOf(places);
}

}  // namespace

std::string LineOfJson(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
}

Result<std::string> Explained(Module& module, const ExplainRequest& request) {
  if (!request.targets.empty()) return ComparedPlaces(module, request);
  AccountOptions options = request.account;
  if (!request.kernel.empty() || request.dot || request.lints) options.compare = false;
  TOK_TRY(std::unique_ptr<ProgramAccount> account, AccountOf(module, options));
  if (options.strict) {
    if (!account->why_interpreted.empty())
      return MakeError(ErrorCode::kNoKernel,
                       "explain: the interpreter runs all of it: " + account->why_interpreted,
                       {.file = module.file});
    TOK_RETURN_IF_ERROR(CheckAllKernels(account->program, module));
  }
  if (!request.kernel.empty()) return KernelText(*account, request);
  if (request.dot) {
    std::string dot = DotOf(*account, module.name());
    return request.json ? LineOfJson({{"dot", dot}}) : dot;
  }
  Lints lints = LintsOf(module, *account);
  if (request.lints) {
    if (request.json) return LineOfJson({{"lints", JsonOf(lints.all)}, {"call_us", lints.call_us}});
    return lints.all.empty() ? "nothing to remark\n" : TextOf(lints.all) + SumOf(lints);
  }
  Records records = !request.decisions ? Records::kNone
                    : request.rewrites ? Records::kAll
                                       : Records::kOfKernels;
  if (!request.json) return TextOf(*account, records) + TextOf(lints.all);
  json out = JsonOf(*account, options.target);
  out["lints"] = JsonOf(lints.all);
  return LineOfJson(out);
}

void ExplainCompilation(const Module& module, const CompileOptions& options) {
  const char* asked = std::getenv("TOKAMAK_DEBUG");
  std::string_view word = asked == nullptr ? "" : asked;
  if (word != "explain" && word != "decisions") return;
  ExplainRequest request;
  request.decisions = word == "decisions";
  request.account.strict = false;
  Result<FusionChoice> fusion = FusionOf(options);
  std::unique_ptr<Module> copy = CloneModule(module);
  if (!fusion.ok() || copy->entry() == nullptr) return;
  request.account.fusion = std::move(fusion.value());
  Result<std::string> told = Explained(*copy, request);
  std::string text = told.ok() ? std::move(told.value()) : told.error().message + "\n";
  if (IsReporting()) {
    Report(json{{"event", "explain"}, {"name", module.name()}, {"text", text}});
  } else {
    std::fputs((module.name() + ":\n" + text).c_str(), stderr);
  }
}

Status SetExplainOption(ExplainRequest& request, CompileOptions& compile, std::string_view name,
                        const std::string& value) {
  bool truth = value == "true" || value == "True" || value == "1";
  if (name == "target") {
    if (value == "host" || value == "h200") {
      request.account.target = value;
    } else if (value == "host,h200") {
      request.targets = value;
    } else {
      return MakeError(ErrorCode::kOptionValue,
                       "explain: target is host, h200 or host,h200, not '" + value + "'");
    }
  } else if (name == "json") {
    request.json = truth;
  } else if (name == "decisions") {
    request.decisions = truth;
  } else if (name == "measure") {
    request.account.measure = truth;
  } else if (name == "compare") {
    request.account.compare = truth;
  } else if (name == "dot") {
    request.dot = truth;
  } else if (name == "lints") {
    request.lints = truth;
  } else if (name == "kernel") {
    request.kernel = value;
  } else {
    TOK_RETURN_IF_ERROR(SetOption(compile, name, value));
    TOK_TRY(request.account.fusion, FusionOf(compile));
    request.account.packs = compile.packs == "none" ? "" : compile.packs;
    request.account.strict = compile.strict;
  }
  return Ok();
}

}  // namespace tokamak
