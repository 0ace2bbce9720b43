#include <algorithm>
#include <filesystem>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/json_error.h"
#include "driver/load.h"
#include "ir/op.h"

// `tokamak ops`: one row per op of ops.def, and who can do what with it.
//
//   hlo, mlir    the name under which the readers know it and the writers print it
//   inferred     how its shape is found: from operands, from attributes, or written and checked
//   interpreted  the interpreter has an evaluator (evaluators.h: a missing one does not link)
//   cpu, cuda    the backend generates code for it
//   tested       how many programs of --tests hold it

namespace tokamak {
namespace {

using nlohmann::json;
using Counts = std::vector<int64_t>;

// How many programs below `folder` hold each op. Programs that do not read
// count for nothing: they are error tests.
Counts CountTests(const std::string& folder) {
  Counts counts(kOpCount, 0);
  std::error_code ignored;
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder, ignored))
    if (entry.is_regular_file(ignored)) files.push_back(entry.path().string());
  for (const std::string& path : files) {
    Result<LoadedFile> file = LoadFile(path, Verification::kNo);
    if (!file.ok()) continue;
    std::set<Op> seen;
    for (const auto& program : file.value().programs) {
      if (!program.ok()) continue;
      for (const auto& computation : program.value()->computations())
        for (const Instr* instr : computation->Instrs()) seen.insert(instr->op());
    }
    for (Op op : seen) ++counts[static_cast<size_t>(op)];
  }
  return counts;
}

std::string_view InferenceOf(const OpInfo& info) {
  switch (info.shape_rule) {
    case ShapeRule::kSameAsOperands:
      return "same as operands";
    case ShapeRule::kFromAttributes:
      return "computed";
    case ShapeRule::kExplicit:
      return "written, checked";
  }
  return "";
}

std::string MlirNameOf(const OpInfo& info) {
  if (!info.mlir.empty()) return std::string(info.mlir);
  std::string name = "tokamak." + std::string(info.name);
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

std::string TestedText(const Counts& counts, const OpInfo& info) {
  if (counts.empty()) return "?";
  return std::to_string(counts[static_cast<size_t>(info.op)]);
}

bool IsTested(const Counts& counts, const OpInfo& info) {
  return !counts.empty() && counts[static_cast<size_t>(info.op)] > 0;
}

std::string Markdown(const Counts& counts) {
  std::string text =
      "# Ops\n\n"
      "Made by `tokamak ops --markdown --tests tests/run` from `src/ir/ops.def`; a test compares. "
      "`tested`: a program of that folder holds the op.\n\n"
      "| op | in MLIR | meaning | shape | interpreter | cpu | cuda | tested |\n"
      "|---|---|---|---|---|---|---|---|\n";
  for (const OpInfo& info : AllOps())
    text +=
        fmt::format("| `{}` | `{}` | {} | {} | yes | no | no | {} |\n", info.name, MlirNameOf(info),
                    info.meaning, InferenceOf(info), IsTested(counts, info) ? "yes" : "no");
  return text;
}

std::string Json(const Counts& counts) {
  json rows = json::array();
  for (const OpInfo& info : AllOps()) {
    json row = {{"op", info.name},
                {"mlir", MlirNameOf(info)},
                {"meaning", info.meaning},
                {"inferred", InferenceOf(info)},
                {"parsed", true},
                {"interpreted", true},
                {"cpu", false},
                {"cuda", false}};
    if (!counts.empty()) row["tested"] = counts[static_cast<size_t>(info.op)];
    rows.push_back(std::move(row));
  }
  return rows.dump(1) + "\n";
}

std::string Table(const Counts& counts) {
  std::string text = fmt::format("{:26} {:36} {:17} {:6} {:3} {:4} {}\n", "op", "in MLIR", "shape",
                                 "interp", "cpu", "cuda", "tests");
  for (const OpInfo& info : AllOps())
    text += fmt::format("{:26} {:36} {:17} {:6} {:3} {:4} {}\n", info.name, MlirNameOf(info),
                        InferenceOf(info), "yes", "no", "no", TestedText(counts, info));
  return text + fmt::format("{} ops\n", kOpCount);
}

}  // namespace

int Ops(const OpsCommand& command, Console& console) {
  Counts counts;
  if (!command.tests.empty()) {
    std::error_code error;
    if (!std::filesystem::is_directory(command.tests, error))
      return console.Report(MakeError(ErrorCode::kFileUnreadable,
                                      "ops: '" + command.tests + "' is no folder",
                                      {.file = command.tests}));
    counts = CountTests(command.tests);
  }
  console.Out(command.json ? Json(counts) : command.markdown ? Markdown(counts) : Table(counts));
  return 0;
}

}  // namespace tokamak
