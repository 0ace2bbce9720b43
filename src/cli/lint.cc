#include <cmath>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "cli/explain.h"
#include "cli/programs.h"
#include "driver/report/explain.h"
#include "driver/report/lint/write_lints.h"
#include "ir/clone.h"

// `tokamak lint`: source lines that cost more than necessary.

namespace tokamak {
namespace {

// What makes a program fail.
struct FailOn {
  std::optional<double> us, share;  // of its warnings, added up
  bool any = false;                 // any warning

  bool Fails(const Lints& lints) const {
    double sum = lints.WarnedUs();
    return lints.HasWarnings() &&
           (any || (us && sum >= *us) || (share && sum >= *share * lints.call_us));
  }
};

// "20us" or "10%".
Result<FailOn> ParseFailOn(const LintCommand& command) {
  FailOn fail_on;
  fail_on.any = command.strict;
  const std::string& text = command.fail_on;
  if (text.empty()) return fail_on;
  char* end = nullptr;
  double number = std::strtod(text.c_str(), &end);
  std::string_view unit = end;
  if (end == text.c_str() || !std::isfinite(number) || number < 0 || (unit != "us" && unit != "%"))
    return MakeError(ErrorCode::kUsage,
                     fmt::format("lint: --fail-on={}: expected microseconds or a part of a call, "
                                 "such as 20us or 10%",
                                 text));
  constexpr double kPercent = 100;
  if (unit == "us")
    fail_on.us = number;
  else
    fail_on.share = number / kPercent;
  return fail_on;
}

Result<ExplainRequest> LintRequestOf(const LintCommand& command) {
  ExplainRequest request;
  TOK_RETURN_IF_ERROR(SetFusion(request.compile, command.fusion));
  request.target = command.target;
  request.device = command.device;
  for (const std::string& rules : command.rules)
    TOK_RETURN_IF_ERROR(AddLintRules(request.lint.rules, rules, "--rules"));
  for (const std::string& rules : command.ignore)
    TOK_RETURN_IF_ERROR(AddLintRules(request.lint.ignore, rules, "--ignore"));
  request.lint.suppressions = command.suppressions;
  return request;
}

}  // namespace

int LintFile(const LintCommand& command, Console& console) {
  Result<ExplainRequest> request = LintRequestOf(command);
  if (!request.ok()) return console.Report(request.error());
  Result<FailOn> fail_on = ParseFailOn(command);
  if (!fail_on.ok()) return console.Report(fail_on.error());
  std::vector<LintedProgram> programs;
  int exit = ForEachProgram(command.file, console, [&](Module& program, std::string_view source) {
    if (program.entry() == nullptr) return 0;
    Result<Lints> lints = LintsOfProgram(CloneModule(program), request.value());
    if (!lints.ok()) return console.Report(lints.error(), source);
    if (!command.sarif) console.Out(LintAnswer(lints.value(), command.json));
    bool fails = fail_on.value().Fails(lints.value());
    programs.push_back({command.file, std::move(lints.value())});
    return fails ? 1 : 0;
  });
  if (command.sarif) console.Out(SarifOf(programs));
  return exit;
}

}  // namespace tokamak
