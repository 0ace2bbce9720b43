#include <optional>

#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/json_error.h"
#include "cli/programs.h"
#include "driver/account/write.h"
#include "driver/all_kernels.h"

// `tokamak explain`: the steps that a program becomes, what each does for which lines of the user's
// program, and what the interpreter does for want of a kernel.

namespace tokamak {
namespace {

Result<AccountOptions> OptionsOf(const ExplainCommand& command) {
  AccountOptions options;
  TOK_TRY(options.fusion,
          ParseFusion(command.fusion.mode, command.fusion.lift, command.fusion.skip));
  if (command.unfused) options.fusion.mode = FusionMode::kNone;
  options.packs = command.packs;
  options.target = command.target;
  options.strict = command.strict;
  options.compare = command.compare;
  options.measure = command.measure;
  options.seconds = command.seconds;
  return options;
}

Status ExplainProgram(Module& module, const ExplainCommand& command, Console& console) {
  TOK_TRY(AccountOptions options, OptionsOf(command));
  TOK_TRY(std::unique_ptr<ProgramAccount> account, AccountOf(module, options));
  if (command.strict && !account->why_interpreted.empty())
    return MakeError(ErrorCode::kNoKernel,
                     "explain: the interpreter runs all of it: " + account->why_interpreted,
                     {.file = module.file});
  console.Out(command.json ? JsonLine(JsonOf(*account, command.target))
                           : TextOf(*account, command.decisions));
  return command.strict ? CheckAllKernels(account->program, module) : Ok();
}

}  // namespace

int Explain(const ExplainCommand& command, Console& console) {
  if (command.as_given) return ExplainGiven(command, console);
  if (std::optional<int> told = ExplainRule(command, console)) return *told;
  return ForEachProgram(command.file, console, [&](Module& program, std::string_view source) {
    if (program.entry() == nullptr) return 0;
    Status shown = ExplainProgram(program, command, console);
    return shown.ok() ? 0 : console.Report(shown.error(), source);
  });
}

}  // namespace tokamak
