#include "cli/explain.h"

#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/json_error.h"
#include "cli/programs.h"
#include "driver/account/views.h"
#include "driver/account/write.h"
#include "driver/all_kernels.h"

// `tokamak explain`: the steps that a program becomes, what each does for which lines of the user's
// program, and what the interpreter does for want of a kernel.

namespace tokamak {
namespace {

using nlohmann::json;

Status ShowKernel(const ProgramAccount& account, const ExplainCommand& command, Console& console) {
  TOK_TRY(std::vector<KernelView> views, KernelsNamed(account, command.kernel));
  json list = json::array();
  for (const KernelView& view : views) {
    std::string language = view.language == "cuda" ? "CUDA C++" : "LLVM IR";
    list.push_back({{"name", view.name}, {"form", view.form}, {view.language, view.code}});
    if (command.json) continue;
    console.Out(fmt::format("// kernel form\n{}\n", view.form));
    console.Out(view.code.empty() ? "// this build makes no " + language + "\n"
                                  : fmt::format("// {}\n{}\n", language, view.code));
  }
  if (command.json) console.Out(JsonLine({{"kernels", std::move(list)}}));
  return Ok();
}

Status Show(const ProgramAccount& account, const Module& module, const ExplainCommand& command,
            Console& console) {
  if (!command.kernel.empty()) return ShowKernel(account, command, console);
  if (command.dot) {
    std::string dot = DotOf(account, module.name());
    console.Out(command.json ? JsonLine({{"dot", dot}}) : dot);
    return Ok();
  }
  console.Out(command.json ? JsonLine(JsonOf(account, command.target))
                           : TextOf(account, command.decisions));
  return Ok();
}

Status ExplainProgram(Module& module, const ExplainCommand& command, Console& console) {
  TOK_TRY(AccountOptions options, OptionsOf(command));
  if (!command.kernel.empty() || command.dot) options.compare = false;
  TOK_TRY(std::unique_ptr<ProgramAccount> account, AccountOf(module, options));
  if (command.strict && !account->why_interpreted.empty())
    return MakeError(ErrorCode::kNoKernel,
                     "explain: the interpreter runs all of it: " + account->why_interpreted,
                     {.file = module.file});
  TOK_RETURN_IF_ERROR(Show(*account, module, command, console));
  return command.strict ? CheckAllKernels(account->program, module) : Ok();
}

}  // namespace

Result<AccountOptions> OptionsOf(const ExplainCommand& command) {
  AccountOptions options;
  TOK_TRY(options.fusion,
          ParseFusion(command.fusion.mode, command.fusion.lift, command.fusion.skip));
  options.fusion.pins = command.fusion.pins;
  if (command.unfused) options.fusion.mode = FusionMode::kNone;
  options.packs = command.packs;
  options.target = command.target;
  options.strict = command.strict;
  options.compare = command.compare;
  options.measure = command.measure;
  options.seconds = command.seconds;
  return options;
}

int Explain(const ExplainCommand& command, Console& console) {
  if (!command.diff.empty()) return ExplainDiff(command, console);
  if (command.file.empty()) {
    Error error = MakeError(ErrorCode::kUsage, "tokamak explain: FILE is required");
    error.notes.push_back("`tokamak explain --help` shows what it takes");
    return console.Report(error);
  }
  if (command.as_given) return ExplainGiven(command, console);
  if (std::optional<int> told = ExplainRule(command, console)) return *told;
  return ForEachProgram(command.file, console, [&](Module& program, std::string_view source) {
    if (program.entry() == nullptr) return 0;
    Status shown = ExplainProgram(program, command, console);
    return shown.ok() ? 0 : console.Report(shown.error(), source);
  });
}

}  // namespace tokamak
