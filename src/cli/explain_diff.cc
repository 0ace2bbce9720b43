#include <nlohmann/json.hpp>

#include "cli/explain.h"
#include "cli/json_error.h"
#include "cli/programs.h"
#include "driver/compile/fusion_options.h"
#include "driver/report/write.h"

namespace tokamak {
namespace {

// One side of the comparison: a program and its compilation.
struct Side {
  std::string name;
  CompileReport report;
};

Result<Side> SideOf(const std::string& path, const std::string& name,
                    const ExplainRequest& request) {
  Side side;
  side.name = name;
  TOK_TRY(Target target, TargetOf(request));
  TOK_TRY(LoadedFile file, LoadFile(path, Verification::kYes));
  for (Result<std::unique_ptr<Module>>& program : file.programs) {
    if (!program.ok()) return program.error();
    if (program.value()->entry() == nullptr) continue;
    TOK_TRY(std::shared_ptr<const Compilation> made,
            Compile(std::move(program.value()), target, request.compile));
    TOK_TRY(side.report, ReportOf(std::move(made), request.report));
    if (side.report.why_interpreted().empty()) return side;
    return MakeError(ErrorCode::kNoKernel,
                     "explain: " + path +
                         ": the whole program is interpreted: " + side.report.why_interpreted());
  }
  return MakeError(ErrorCode::kNoEntry, "explain: " + path + " has no program with an entry");
}

bool IsMode(const std::string& word) {
  return ParseFusionMode(word).ok();
}

Result<std::pair<Side, Side>> SidesOf(const ExplainCommand& command) {
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
    TOK_TRY(Side first, SideOf(command.file, a, options));
    TOK_TRY(Side second, SideOf(command.file, b, other));
    return std::pair(std::move(first), std::move(second));
  }
  if (!command.file.empty())
    return MakeError(ErrorCode::kUsage,
                     "explain: --diff " + a + " " + b +
                         ": with a FILE it takes two of none, rules, greedy and search; to compare "
                         "two programs, leave out FILE");
  TOK_TRY(Side first, SideOf(a, a, options));
  TOK_TRY(Side second, SideOf(b, b, options));
  return std::pair(std::move(first), std::move(second));
}

}  // namespace

int ExplainDiff(const ExplainCommand& command, Console& console) {
  Result<std::pair<Side, Side>> sides = SidesOf(command);
  if (!sides.ok()) return console.Report(sides.error());
  const auto& [a, b] = sides.value();
  console.Out(command.json ? JsonLine(DiffJson(a.report, b.report, a.name, b.name))
                           : DiffText(a.report, b.report, a.name, b.name));
  return 0;
}

}  // namespace tokamak
