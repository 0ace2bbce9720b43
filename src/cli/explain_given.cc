#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/json_error.h"
#include "cli/programs.h"
#include "driver/as_given.h"
#include "driver/kernel_codes.h"
#include "driver/lower_module.h"
#include "explain/rules.h"
#include "ir/clone.h"
#include "passes/passes.h"

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

Result<Ours> PlanOurs(const Module& module, const ExplainCommand& command) {
  Ours ours;
  std::unique_ptr<Module> own = CloneModule(module);
  DecisionLog log;
  TOK_TRY(Pipeline pipeline, ParsePipeline("default"));
  PassContext context(log, {}, {.strict = command.strict});
  TOK_TRY([[maybe_unused]] std::vector<PassRun> runs,
          RunPasses(*own, pipeline, context, PipelineOptions{}));
  ours.why_not = WhyNotLowered(*own);
  if (!ours.why_not.empty()) return ours;
  TOK_TRY(FusionChoice fusion,
          ParseFusion(command.fusion.mode, command.fusion.lift, command.fusion.skip));
  LowerOptions options;
  options.plan.mode = fusion.mode;
  bool gpu = command.target == "h200";
  if (gpu) options.machine = GpuMachine();
  TOK_TRY(LoweredProgram program, gpu ? LowerModule(*own, options, log, fusion.paper)
                                      : LowerForHost(*own, options, log, fusion.paper));
  ours.launches = program.launches;
  ours.library = static_cast<int64_t>(program.products.size() + program.calls.size());
  ours.host = static_cast<int64_t>(program.host_instrs.size());
  ours.copies = program.copies;
  for (const KernelSource& source : program.sources)
    for (const KernelArgument& argument : source.arguments)
      ours.bytes += PartsOf(argument.instr->shape())[argument.part].ByteSize();
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
  return ForEachProgram(command.file, console, [&](Module& program, std::string_view source) {
    if (program.entry() == nullptr) return 0;
    Machine machine = command.target == "h200" ? GpuMachine() : HostMachine();
    GivenProgram given = ReadGiven(program, machine);
    Result<Ours> ours = PlanOurs(program, command);
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
