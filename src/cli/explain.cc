#include "cli/explain.h"

#include <optional>

#include "cli/programs.h"
#include "cli/usage.h"
#include "driver/account/explain.h"

// `tokamak explain`: the steps that a program becomes, what each does for which lines of the user's
// program, and what the interpreter does for want of a kernel. `tokamak lint`: lines that cost more
// than they need.

namespace tokamak {
namespace {

Result<ExplainRequest> RequestOf(const ExplainCommand& command) {
  ExplainRequest request;
  TOK_TRY(request.account, OptionsOf(command));
  if (command.target == "host,h200" || command.target == "h200,host")
    request.targets = command.target;
  request.json = command.json;
  request.decisions = command.decisions;
  request.rewrites = command.rewrites;
  request.lints = command.lints;
  request.dot = command.dot;
  request.kernel = command.kernel;
  return request;
}

}  // namespace

Result<AccountOptions> OptionsOf(const ExplainCommand& command) {
  AccountOptions options;
  TOK_TRY(options.fusion,
          ParseFusion(command.fusion.mode, command.fusion.lift, command.fusion.skip));
  TOK_TRY(options.fusion.effort, ParseEffort(command.fusion.effort));
  options.fusion.pins = command.fusion.pins;
  if (command.unfused) options.fusion.mode = FusionMode::kNone;
  options.packs = command.packs;
  options.target = command.target;
  options.strict = command.strict;
  options.compare = command.compare;
  options.measure = command.measure;
  options.seconds = command.seconds;
  if (!command.device.empty()) options.device = command.device;
  return options;
}

int Explain(const ExplainCommand& command, Console& console) {
  if (!command.diff.empty()) return ExplainDiff(command, console);
  if (command.file.empty()) return console.Report(FileMissing("explain"));
  if (command.as_given) return ExplainGiven(command, console);
  if (std::optional<int> told = ExplainRule(command, console)) return *told;
  Result<ExplainRequest> request = RequestOf(command);
  if (!request.ok()) return console.Report(request.error());
  return ForEachProgram(command.file, console, [&](Module& program, std::string_view source) {
    if (program.entry() == nullptr) return 0;
    Result<std::string> text = Explained(program, request.value());
    if (!text.ok()) return console.Report(text.error(), source);
    console.Out(text.value());
    return 0;
  });
}

int ExplainBeside(const std::string& file, const FusionWords& fusion, Console& console) {
  ExplainCommand command;
  command.file = file;
  command.fusion = fusion;
  command.decisions = true;
  command.rewrites = false;
  StringConsole told;
  int exit = Explain(command, told);
  console.Err(told.out + told.err);
  return exit;
}

}  // namespace tokamak
