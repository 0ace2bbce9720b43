#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/explain.h"
#include "cli/json_error.h"
#include "cli/programs.h"
#include "driver/report/xla_dump.h"
#include "driver/report/xla_page.h"
#include "ir/clone.h"

// `tokamak explain --xla-dump`: the kernels of another compiler's output, where its fusion stopped
// and why, compared with our own plan.

namespace tokamak {
namespace {

using nlohmann::json;

// Source lines listed per entry (chosen).
constexpr size_t kShownLines = 6;

// The program compiled by us, with the marks of MarkDumpedKernels.
Result<CompileReport> CompileMarked(const Module& module, const CompileOptions& options,
                                    const Target& target) {
  std::unique_ptr<Module> copy = CloneModule(module);
  MarkDumpedKernels(*copy);
  TOK_TRY(std::shared_ptr<const Compilation> made, Compile(std::move(copy), target, options));
  return ReportOf(std::move(made));
}

// The program compiled by us with the fusions of the dump.
Result<CompileReport> CompileAsGiven(const Module& module, CompileOptions options,
                                     const Target& target) {
  options.fusion = FusionMode::kXlaPasses;
  options.fusion_tags = DumpedFusionsOf;
  options.plan = nullptr;
  options.persistent = false;  // XLA's loops launch their kernels in each iteration
  return CompileMarked(module, options, target);
}

int64_t BytesOfKernels(const CompileReport& report) {
  int64_t bytes = 0;
  for (const StepReport& step : report.steps)
    if (!step.kernels.empty()) bytes += step.reads + step.writes;
  return bytes;
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
    text += fmt::format(", {} bytes", boundary.bytes);
    if (boundary.fused_us)
      text += fmt::format(", {:.1f} us apart, {:.1f} us as one kernel", *boundary.apart_us,
                          *boundary.fused_us);
    console.Out(text + "\n");
  }
}

void PrintOurs(const CompileReport& ours, Console& console) {
  if (!ours.why_interpreted().empty())
    return console.Out("tokamak: the whole program is interpreted: " + ours.why_interpreted() +
                       "\n");
  const Totals& totals = ours.totals;
  std::string library =
      totals.library == 0 ? "" : fmt::format(" {} library calls,", totals.library);
  console.Out(fmt::format(
      "tokamak: {} kernels,{} {} host steps, {} copies; its kernels move {} bytes; "
      "{:.1f} us predicted (`tokamak explain FILE` has the details)\n",
      totals.kernels, library, totals.host, totals.copies, BytesOfKernels(ours), totals.us));
}

json OursJson(const CompileReport& ours) {
  const Totals& totals = ours.totals;
  json tokamak = {{"kernels", totals.kernels}, {"library", totals.library},
                  {"host", totals.host},       {"copies", totals.copies},
                  {"total", totals.steps()},   {"bytes", BytesOfKernels(ours)},
                  {"predicted_us", totals.us}};
  if (!ours.why_interpreted().empty()) tokamak["interpreted"] = ours.why_interpreted();
  return tokamak;
}

}  // namespace

int ExplainXlaDump(const ExplainCommand& command, Console& console) {
  Result<ExplainRequest> request = RequestOf(command);
  if (!request.ok()) return console.Report(request.error());
  Result<Target> target = TargetOf(request.value());
  if (!target.ok()) return console.Report(target.error());
  int programs = 0;
  return ForEachProgram(command.file, console, [&](Module& program, std::string_view source) {
    if (program.entry() == nullptr) return 0;
    DumpedProgram dumped = ReadXlaDump(program, target.value().machine);
    const CompileOptions& options = request.value().compile;
    Result<CompileReport> ours = CompileMarked(program, options, target.value());
    if (!ours.ok()) return console.Report(ours.error(), source);
    if (!command.html.empty()) {
      DumpPlans plans{std::move(ours.value()), CompileAsGiven(program, options, target.value())};
      std::string page = XlaPage(dumped, plans, program.name());
      Status written = WritePage(PageFile(command.html, ++programs), page, console);
      return written.ok() ? 0 : console.Report(written.error());
    }
    if (command.json) {
      console.Out(JsonLine({{"given", JsonOf(dumped)}, {"tokamak", OursJson(ours.value())}}));
      return 0;
    }
    PrintKernels(dumped, console);
    PrintBoundaries(dumped, console);
    PrintOurs(ours.value(), console);
    return 0;
  });
}

}  // namespace tokamak
