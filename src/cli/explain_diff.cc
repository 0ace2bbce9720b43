#include <utility>

#include "cli/explain.h"
#include "cli/programs.h"
#include "driver/compile/fusion_options.h"

namespace tokamak {
namespace {

// The first program of a file that has an entry.
Result<DiffSide> SideOf(const std::string& path, const std::string& name,
                        const ExplainRequest& request) {
  TOK_TRY(LoadedFile file, LoadFile(path, Verification::kYes));
  for (Result<std::unique_ptr<Module>>& program : file.programs) {
    if (!program.ok()) return program.error();
    if (program.value()->entry() == nullptr) continue;
    return DiffSide{name, std::move(program.value()), request};
  }
  return MakeError(ErrorCode::kNoEntry, "explain: " + path + " has no program with an entry");
}

bool IsMode(const std::string& word) {
  return ParseFusionMode(word).ok();
}

Result<std::pair<DiffSide, DiffSide>> SidesOf(const ExplainCommand& command) {
  const std::string &a = command.diff[0], &b = command.diff[1];
  TOK_TRY(ExplainRequest options, RequestOf(command));
  if (IsMode(a) && IsMode(b)) {
    if (command.file.empty())
      return MakeError(
          ErrorCode::kUsage,
          "explain: --diff " + a + " " + b + " compares two plans of one program: FILE is missing");
    ExplainRequest other = options;
    TOK_TRY(options.compile.fusion, ParseFusionMode(a));
    TOK_TRY(other.compile.fusion, ParseFusionMode(b));
    TOK_TRY(DiffSide first, SideOf(command.file, a, options));
    TOK_TRY(DiffSide second, SideOf(command.file, b, other));
    return std::pair(std::move(first), std::move(second));
  }
  if (!command.file.empty())
    return MakeError(ErrorCode::kUsage,
                     "explain: --diff " + a + " " + b +
                         ": with a FILE it takes two of none, rules, greedy and search; to compare "
                         "two programs, leave out FILE");
  TOK_TRY(DiffSide first, SideOf(a, a, options));
  TOK_TRY(DiffSide second, SideOf(b, b, options));
  return std::pair(std::move(first), std::move(second));
}

}  // namespace

int ExplainDiff(const ExplainCommand& command, Console& console) {
  Result<std::pair<DiffSide, DiffSide>> sides = SidesOf(command);
  if (!sides.ok()) return console.Report(sides.error());
  auto& [a, b] = sides.value();
  Result<std::string> text = ExplainedDiff(std::move(a), std::move(b));
  if (!text.ok()) return console.Report(text.error());
  if (command.html.empty()) {
    console.Out(text.value());
    return 0;
  }
  Status written = WritePage(command.html, text.value(), console);
  return written.ok() ? 0 : console.Report(written.error());
}

}  // namespace tokamak
