#include "cli/explain.h"

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "cli/programs.h"
#include "cli/usage.h"
#include "driver/compile/fusion_options.h"
#include "driver/measure/measure_compilation.h"
#include "driver/report/write.h"
#include "driver/rules/make_rule.h"
#include "driver/testing/check_plan.h"
#include "ir/clone.h"
#include "text/load.h"

// `tokamak explain`: the steps of a compiled program, the source lines that each step implements,
// and the steps that are interpreted for lack of a kernel.

namespace tokamak {
namespace {

void PrintRuleWarning(const Error& error) {
  std::fputs((Render(error) + "\n").c_str(), stderr);
}

}  // namespace

Status AddRules(CompileOptions& options, const std::vector<std::string>& files) {
  for (const std::string& file : files) {
    TOK_TRY(auto rules, LoadRuleFile(file, PrintRuleWarning));
    options.rules.insert(options.rules.end(), rules.begin(), rules.end());
  }
  return Ok();
}

Status SetFusion(CompileOptions& options, const FusionWords& words) {
  TOK_TRY(options.fusion, ParseFusionMode(words.mode));
  TOK_TRY(options.effort, ParseEffort(words.effort));
  TOK_TRY(options.lifted, ParseLifted(words.lift));
  TOK_TRY(options.skip_passes, ParseSkipped(words.skip));
  options.constraints = words.constraints;
  for (const std::string& text : words.schedules)
    TOK_RETURN_IF_ERROR(AddScheduleOption(options.schedules, text));
  TOK_RETURN_IF_ERROR(AddRules(options, words.rules));
  if (words.plan.empty()) return Ok();
  TOK_TRY(Bytes bytes, ReadFileBytes(words.plan));
  TOK_TRY(SerializedPlan plan, PlanFromJson(bytes.text(), words.plan));
  UsePlan(options, plan);
  return Ok();
}

Result<ExplainRequest> RequestOf(const ExplainCommand& command) {
  ExplainRequest request;
  TOK_RETURN_IF_ERROR(SetFusion(request.compile, command.fusion));
  if (command.unfused) request.compile.fusion = FusionMode::kNone;
  request.compile.horizontal = HorizontalModeFromName(command.horizontal);
  request.compile.strict |= command.strict;
  request.compile.require_kernels = command.strict;
  if (command.target == "host,h200" || command.target == "h200,host")
    request.targets = command.target;
  else
    request.target = command.target;
  request.device = command.device;
  if (command.measure && request.device.empty()) request.device = "cuda";
  request.compare = command.compare;
  if (command.measure) request.report.measurer = MeasureCompilation;
  request.report.seconds = command.seconds;
  request.json = command.json;
  request.decisions = command.decisions;
  request.rewrites = command.rewrites;
  request.dot = command.dot;
  request.html = !command.html.empty();
  request.page.code = command.code;
  request.contractions = command.contractions;
  request.kernel = command.kernel;
  request.write_plan = command.write_plan;
  return request;
}

Status CheckPlan(const PlanChecks& checks, std::shared_ptr<const Compilation> made,
                 const Module& program, Console& console) {
  if (!made->why_interpreted.empty()) return Ok();
  if (checks.cost) {
    TOK_TRY(PlanCost cost, CostOfPlan(made, program));
    std::string unfused =
        cost.unfused_us ? fmt::format("; {:.6f} us unfused", *cost.unfused_us) : "";
    console.Err(fmt::format("predicted: {:.6f} us{}\n", cost.us, unfused));
  }
  return checks.values ? CheckPlanValues(program, made->target, made->options) : Ok();
}

// Compiles a program again, for the checks of its plan.
Status CheckExplained(const ExplainCommand& command, const ExplainRequest& request,
                      const Module& program, Console& console) {
  if (!command.checks.values && !command.checks.cost) return Ok();
  TOK_TRY(Target target, TargetOf(request));
  TOK_TRY(std::shared_ptr<const Compilation> made,
          Compile(CloneModule(program), target, request.compile));
  return CheckPlan(command.checks, std::move(made), program, console);
}

std::string PageFile(const std::string& file, int program) {
  if (program == 1) return file;
  std::filesystem::path path = file;
  std::string name =
      fmt::format("{}.{}{}", path.stem().string(), program, path.extension().string());
  return (path.parent_path() / name).string();
}

Status WritePage(const std::string& file, const std::string& page, Console& console) {
  TOK_RETURN_IF_ERROR(WriteFileBytes(file, page));
  console.Out(fmt::format("{}: {}\n", file, BytesText(static_cast<int64_t>(page.size()))));
  return Ok();
}

// A page is the whole report: nothing that prints another one or a part of it goes with --html.
Status CheckPageOptions(const ExplainCommand& command) {
  if (!command.trace.empty() && (!command.diff.empty() || command.xla_dump))
    return MakeError(ErrorCode::kUsage, fmt::format("explain: --trace excludes {}",
                                                    command.xla_dump ? "--xla-dump" : "--diff"));
  if (command.html.empty()) return Ok();
  for (auto [is_given, option] :
       {std::pair(command.json, "--json"), std::pair(command.dot, "--dot"),
        std::pair(!command.kernel.empty(), "--kernel")})
    if (is_given)
      return MakeError(ErrorCode::kUsage, fmt::format("explain: --html excludes {}", option));
  return Ok();
}

int Explain(const ExplainCommand& command, Console& console) {
  if (Status fits = CheckPageOptions(command); !fits.ok()) return console.Report(fits.error());
  if (!command.diff.empty()) return ExplainDiff(command, console);
  if (command.file.empty()) return console.Report(FileMissing("explain"));
  if (command.xla_dump) return ExplainXlaDump(command, console);
  if (std::optional<int> output = ExplainError(command, console)) return *output;
  if (std::optional<int> output = ExplainRule(command, console)) return *output;
  Result<ExplainRequest> request = RequestOf(command);
  if (!request.ok()) return console.Report(request.error());
  int programs = 0;
  using Clock = std::chrono::steady_clock;
  Clock::time_point begin = Clock::now();
  return ForEachProgram(command.file, console, [&](Module& program, std::string_view source) {
    if (program.entry() == nullptr) return 0;
    double& read_ms = request.value().page.read_ms;  // of the whole file
    if (read_ms == 0)
      read_ms = std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
    ++programs;
    if (!command.trace.empty()) request.value().write_trace = PageFile(command.trace, programs);
    Result<std::string> text = Explained(CloneModule(program), request.value());
    if (!text.ok()) return console.Report(text.error(), source);
    if (command.html.empty()) {
      console.Out(text.value());
    } else {
      Status written = WritePage(PageFile(command.html, programs), text.value(), console);
      if (!written.ok()) return console.Report(written.error());
    }
    Status checked = CheckExplained(command, request.value(), program, console);
    return checked.ok() ? 0 : console.Report(checked.error(), source);
  });
}

void ExplainBeside(const Executable& executable, Console& console) {
  ExplainRequest request;
  request.decisions = true;
  request.rewrites = false;
  Result<std::string> text = Explained(executable.shared_compilation(), request, nullptr);
  console.Err(text.ok() ? text.value() : Render(text.error(), {}));
}

int ExplainFileBeside(const std::string& file, const FusionWords& fusion, Console& console) {
  ExplainCommand command;
  command.file = file;
  command.fusion = fusion;
  command.decisions = true;
  command.rewrites = false;
  StringConsole output;
  int exit = Explain(command, output);
  console.Err(output.out + output.err);
  return exit;
}

}  // namespace tokamak
