#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/explain.h"
#include "cli/json_error.h"
#include "cli/programs.h"
#include "driver/as_given.h"
#include "ir/clone.h"

// `tokamak explain --as-given`: what another compiler made of a program, where it stopped and why,
// beside our own plan.

namespace tokamak {
namespace {

using nlohmann::json;

constexpr size_t kShownLines = 6;

json ToJson(const GivenProgram& given) {
  json kernels = json::array(), boundaries = json::array();
  for (const GivenKernel& kernel : given.kernels)
    kernels.push_back({{"name", kernel.name},
                       {"computation", kernel.computation},
                       {"kind", kernel.kind},
                       {"ops", kernel.ops},
                       {"lines", kernel.lines},
                       {"reads_bytes", kernel.reads},
                       {"writes_bytes", kernel.writes},
                       {"predicted_us", kernel.us ? json(*kernel.us) : json(nullptr)}});
  for (const GivenBoundary& boundary : given.boundaries)
    boundaries.push_back({{"from", boundary.from},
                          {"to", boundary.to},
                          {"cause", boundary.cause},
                          {"rule", boundary.rule},
                          {"because", boundary.because},
                          {"bytes", boundary.bytes}});
  return {{"fusions", given.fusions},
          {"library", given.library},
          {"kernels", std::move(kernels)},
          {"boundaries", std::move(boundaries)}};
}

// Our plan for the same program.
struct Ours {
  std::string why_not;  // the interpreter runs it
  int64_t launches = 0, library = 0, host = 0, copies = 0;
  int64_t bytes = 0;  // that kernels read and write

  int64_t total() const { return launches + library + host + copies; }
};

Result<Ours> PlanOurs(const Module& module, const ExplainRequest& request, const Target& target) {
  Ours ours;
  std::unique_ptr<Module> copy = CloneModule(module);
  TOK_TRY(std::shared_ptr<const Compilation> made,
          Compile(std::move(copy), target, request.compile));
  ours.why_not = made->why_interpreted;
  TOK_TRY(ProgramAccount account, AccountOf(std::move(made)));
  ours.launches = account.totals.kernels;
  ours.library = account.totals.library;
  ours.host = account.totals.host;
  ours.copies = account.totals.copies;
  for (const StepAccount& step : account.steps)
    if (!step.kernels.empty()) ours.bytes += step.reads + step.writes;
  return ours;
}

void PrintKernels(const GivenProgram& given, Console& console) {
  int64_t reads = 0, writes = 0;
  double us = 0;
  for (const GivenKernel& kernel : given.kernels) {
    reads += kernel.reads;
    writes += kernel.writes;
    us += kernel.us.value_or(0);
  }
  auto all = static_cast<int64_t>(given.kernels.size());
  console.Out(fmt::format(
      "given: {} kernels ({} fusions, {} library calls, {} others), reads {} bytes, writes {}; "
      "{:.1f} us predicted\n",
      all, given.fusions, given.library, all - given.fusions - given.library, reads, writes, us));
  for (const GivenKernel& kernel : given.kernels) {
    std::string price = kernel.us ? fmt::format("{:.1f} us", *kernel.us) : "no price";
    console.Out(fmt::format("{:<10} {}  {} ops, reads {} bytes, writes {}, {}\n", kernel.kind,
                            kernel.name, kernel.ops, kernel.reads, kernel.writes, price));
    std::string lines;
    for (size_t i = 0; i < std::min(kernel.lines.size(), kShownLines); ++i)
      lines += (lines.empty() ? "" : ", ") + kernel.lines[i];
    if (kernel.lines.size() > kShownLines)
      lines += fmt::format(" and {} more", kernel.lines.size() - kShownLines);
    if (!lines.empty()) console.Out("           " + lines + "\n");
  }
}

void PrintBoundaries(const GivenProgram& given, Console& console) {
  if (!given.boundaries.empty()) console.Out("boundaries:\n");
  for (const GivenBoundary& boundary : given.boundaries) {
    std::string text = fmt::format("  {} -> {}  {}", boundary.from, boundary.to, boundary.cause);
    if (!boundary.rule.empty()) text += " by " + boundary.rule;
    if (!boundary.because.empty()) text += "  (" + boundary.because + ")";
    console.Out(text + fmt::format(", {} bytes\n", boundary.bytes));
  }
}

void PrintOurs(const Ours& ours, Console& console) {
  if (!ours.why_not.empty())
    return console.Out("tokamak: the interpreter runs all of it: " + ours.why_not + "\n");
  std::string library = ours.library == 0 ? "" : fmt::format(" {} library calls,", ours.library);
  console.Out(
      fmt::format("tokamak: {} kernels,{} {} host steps, {} copies; its kernels move {} "
                  "bytes (`tokamak explain FILE` tells more)\n",
                  ours.launches, library, ours.host, ours.copies, ours.bytes));
}

}  // namespace

int ExplainGiven(const ExplainCommand& command, Console& console) {
  Result<ExplainRequest> request = RequestOf(command);
  if (!request.ok()) return console.Report(request.error());
  Result<Target> target = TargetOf(request.value());
  if (!target.ok()) return console.Report(target.error());
  return ForEachProgram(command.file, console, [&](Module& program, std::string_view source) {
    if (program.entry() == nullptr) return 0;
    GivenProgram given = ReadGiven(program, target.value().machine);
    Result<Ours> ours = PlanOurs(program, request.value(), target.value());
    if (!ours.ok()) return console.Report(ours.error(), source);
    if (command.json) {
      const Ours& own = ours.value();
      json tokamak = {{"kernels", own.launches}, {"library", own.library}, {"host", own.host},
                      {"copies", own.copies},    {"total", own.total()},   {"bytes", own.bytes}};
      if (!own.why_not.empty()) tokamak["interpreted"] = own.why_not;
      console.Out(JsonLine({{"given", ToJson(given)}, {"tokamak", std::move(tokamak)}}));
      return 0;
    }
    PrintKernels(given, console);
    PrintBoundaries(given, console);
    PrintOurs(ours.value(), console);
    return 0;
  });
}

}  // namespace tokamak
