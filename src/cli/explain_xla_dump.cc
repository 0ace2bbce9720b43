#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/explain.h"
#include "cli/json_error.h"
#include "cli/programs.h"
#include "driver/report/xla_dump.h"
#include "ir/clone.h"

// `tokamak explain --xla-dump`: the kernels of another compiler's output, where its fusion stopped
// and why, compared with our own plan.

namespace tokamak {
namespace {

using nlohmann::json;

// Source lines listed per entry (chosen).
constexpr size_t kShownLines = 6;

json ToJson(const DumpedProgram& dumped) {
  json kernels = json::array(), boundaries = json::array();
  for (const DumpedKernel& kernel : dumped.kernels)
    kernels.push_back({{"name", kernel.name},
                       {"computation", kernel.computation},
                       {"kind", kernel.kind},
                       {"ops", kernel.ops},
                       {"lines", kernel.lines},
                       {"reads_bytes", kernel.reads},
                       {"writes_bytes", kernel.writes},
                       {"predicted_us", kernel.us ? json(*kernel.us) : json(nullptr)}});
  for (const DumpedBoundary& boundary : dumped.boundaries)
    boundaries.push_back({{"from", boundary.from},
                          {"to", boundary.to},
                          {"cause", boundary.cause},
                          {"rule", boundary.rule},
                          {"because", boundary.because},
                          {"bytes", boundary.bytes}});
  return {{"fusions", dumped.fusions},
          {"library", dumped.library},
          {"kernels", std::move(kernels)},
          {"boundaries", std::move(boundaries)}};
}

// Our plan for the same program.
struct Ours {
  std::string why_not;  // why the interpreter runs it
  int64_t launches = 0, library = 0, host = 0, copies = 0;
  int64_t bytes = 0;  // read and written by kernels

  int64_t total() const { return launches + library + host + copies; }
};

Result<Ours> PlanOurs(const Module& module, const ExplainRequest& request, const Target& target) {
  Ours ours;
  std::unique_ptr<Module> copy = CloneModule(module);
  TOK_TRY(std::shared_ptr<const Compilation> made,
          Compile(std::move(copy), target, request.compile));
  ours.why_not = made->why_interpreted;
  TOK_TRY(CompileReport report, ReportOf(std::move(made)));
  ours.launches = report.totals.kernels;
  ours.library = report.totals.library;
  ours.host = report.totals.host;
  ours.copies = report.totals.copies;
  for (const StepReport& step : report.steps)
    if (!step.kernels.empty()) ours.bytes += step.reads + step.writes;
  return ours;
}

void PrintKernels(const DumpedProgram& dumped, Console& console) {
  int64_t reads = 0, writes = 0;
  double us = 0;
  for (const DumpedKernel& kernel : dumped.kernels) {
    reads += kernel.reads;
    writes += kernel.writes;
    us += kernel.us.value_or(0);
  }
  auto all = static_cast<int64_t>(dumped.kernels.size());
  console.Out(fmt::format(
      "XLA: {} kernels ({} fusions, {} library calls, {} others), reads {} bytes, writes {}; "
      "{:.1f} us predicted\n",
      all, dumped.fusions, dumped.library, all - dumped.fusions - dumped.library, reads, writes,
      us));
  for (const DumpedKernel& kernel : dumped.kernels) {
    std::string estimate = kernel.us ? fmt::format("{:.1f} us", *kernel.us) : "no estimate";
    console.Out(fmt::format("{:<10} {}  {} ops, reads {} bytes, writes {}, {}\n", kernel.kind,
                            kernel.name, kernel.ops, kernel.reads, kernel.writes, estimate));
    std::string lines;
    for (size_t i = 0; i < std::min(kernel.lines.size(), kShownLines); ++i)
      lines += (lines.empty() ? "" : ", ") + kernel.lines[i];
    if (kernel.lines.size() > kShownLines)
      lines += fmt::format(" and {} more", kernel.lines.size() - kShownLines);
    if (!lines.empty()) console.Out("           " + lines + "\n");
  }
}

void PrintBoundaries(const DumpedProgram& dumped, Console& console) {
  if (!dumped.boundaries.empty()) console.Out("boundaries:\n");
  for (const DumpedBoundary& boundary : dumped.boundaries) {
    std::string text = fmt::format("  {} -> {}  {}", boundary.from, boundary.to, boundary.cause);
    if (!boundary.rule.empty()) text += " by " + boundary.rule;
    if (!boundary.because.empty()) text += "  (" + boundary.because + ")";
    console.Out(text + fmt::format(", {} bytes\n", boundary.bytes));
  }
}

void PrintOurs(const Ours& ours, Console& console) {
  if (!ours.why_not.empty())
    return console.Out("tokamak: the whole program is interpreted: " + ours.why_not + "\n");
  std::string library = ours.library == 0 ? "" : fmt::format(" {} library calls,", ours.library);
  console.Out(
      fmt::format("tokamak: {} kernels,{} {} host steps, {} copies; its kernels move {} "
                  "bytes (`tokamak explain FILE` has the details)\n",
                  ours.launches, library, ours.host, ours.copies, ours.bytes));
}

}  // namespace

int ExplainXlaDump(const ExplainCommand& command, Console& console) {
  Result<ExplainRequest> request = RequestOf(command);
  if (!request.ok()) return console.Report(request.error());
  Result<Target> target = TargetOf(request.value());
  if (!target.ok()) return console.Report(target.error());
  return ForEachProgram(command.file, console, [&](Module& program, std::string_view source) {
    if (program.entry() == nullptr) return 0;
    DumpedProgram dumped = ReadXlaDump(program, target.value().machine);
    Result<Ours> ours = PlanOurs(program, request.value(), target.value());
    if (!ours.ok()) return console.Report(ours.error(), source);
    if (command.json) {
      const Ours& own = ours.value();
      json tokamak = {{"kernels", own.launches}, {"library", own.library}, {"host", own.host},
                      {"copies", own.copies},    {"total", own.total()},   {"bytes", own.bytes}};
      if (!own.why_not.empty()) tokamak["interpreted"] = own.why_not;
      console.Out(JsonLine({{"given", ToJson(dumped)}, {"tokamak", std::move(tokamak)}}));
      return 0;
    }
    PrintKernels(dumped, console);
    PrintBoundaries(dumped, console);
    PrintOurs(ours.value(), console);
    return 0;
  });
}

}  // namespace tokamak
