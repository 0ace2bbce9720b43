#include <algorithm>
#include <filesystem>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/json_error.h"
#include "driver/load.h"
#include "driver/op_coverage.h"
#include "ir/op.h"

// `tokamak ops`: one row per op of ops.def, and who can do what with it.
//
//   hlo, mlir    the name under which the readers know it and the writers print it
//   inferred     how its shape is found: from operands, from attributes, or written and checked
//   interpreted  the interpreter has an evaluator (evaluators.h: a missing one does not link)
//   cpu, cuda    what a program that has it becomes there (driver/op_coverage.h): kernels, a call
//                of a library, a step of the host, or the interpreter runs all of it
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

size_t Number(const OpInfo& info) {
  return static_cast<size_t>(info.op);
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

// What becomes of each op on the CPU and on a GPU.
struct Coverage {
  std::vector<std::string> cpu, cuda;  // by op
};

Result<Coverage> CoverageOfAll() {
  Coverage coverage;
  for (const OpInfo& info : AllOps()) {
    TOK_TRY(std::string cpu, CoverageOf(info.op, "host"));
    TOK_TRY(std::string cuda, CoverageOf(info.op, "h200"));
    coverage.cpu.push_back(std::move(cpu));
    coverage.cuda.push_back(std::move(cuda));
  }
  return coverage;
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

// A bar would end a cell of the table.
std::string InCell(std::string_view text) {
  std::string cell;
  for (char c : text) cell += c == '|' ? "\\|" : std::string(1, c);
  return cell;
}

std::string Markdown(const Coverage& coverage, const Counts& counts) {
  std::string text =
      "# Ops\n\n"
      "Made by `tokamak ops --markdown --tests tests/run` from `src/ir/ops.def`; a test compares. "
      "`tested`: a program of that folder holds the op.\n\n"
      "`cpu` and `cuda`: what a small program of the op becomes there. *kernel*: kernels, of it or "
      "of "
      "what it is expanded into; *library*: a call of a library; *copy*: a copy of memory; *no "
      "step*: "
      "its result lies where its operand does; *host*: the interpreter does it, between other "
      "steps; "
      "*interpreter*: the interpreter runs all of the program, since shapes depend on values.\n\n"
      "| op | in MLIR | meaning | shape | interpreter | cpu | cuda | tested |\n"
      "|---|---|---|---|---|---|---|---|\n";
  for (const OpInfo& info : AllOps())
    text +=
        fmt::format("| `{}` | `{}` | {} | {} | yes | {} | {} | {} |\n", info.name, MlirNameOf(info),
                    InCell(info.meaning), InferenceOf(info), coverage.cpu[Number(info)],
                    coverage.cuda[Number(info)], IsTested(counts, info) ? "yes" : "no");
  return text;
}

std::string Json(const Coverage& coverage, const Counts& counts) {
  json rows = json::array();
  for (const OpInfo& info : AllOps()) {
    json row = {{"op", info.name},
                {"mlir", MlirNameOf(info)},
                {"meaning", info.meaning},
                {"inferred", InferenceOf(info)},
                {"parsed", true},
                {"interpreted", true},
                {"cpu", coverage.cpu[Number(info)]},
                {"cuda", coverage.cuda[Number(info)]}};
    if (!counts.empty()) row["tested"] = counts[static_cast<size_t>(info.op)];
    rows.push_back(std::move(row));
  }
  return rows.dump(1) + "\n";
}

std::string Table(const Coverage& coverage, const Counts& counts) {
  std::string text = fmt::format("{:26} {:36} {:17} {:6} {:20} {:20} {}\n", "op", "in MLIR",
                                 "shape", "interp", "cpu", "cuda", "tests");
  for (const OpInfo& info : AllOps())
    text += fmt::format("{:26} {:36} {:17} {:6} {:20} {:20} {}\n", info.name, MlirNameOf(info),
                        InferenceOf(info), "yes", coverage.cpu[Number(info)],
                        coverage.cuda[Number(info)], TestedText(counts, info));
  return text + fmt::format("{} ops\n", kOpCount);
}

// The programs that the coverage is told from, for a test that runs them.
std::string Samples() {
  json rows = json::array();
  for (const OpInfo& info : AllOps())
    for (const OpSample& sample : SamplesOf(info.op))
      rows.push_back({{"op", info.name}, {"kind", sample.kind}, {"program", sample.text}});
  return rows.dump(1) + "\n";
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
  if (command.samples) {
    console.Out(Samples());
    return 0;
  }
  Result<Coverage> coverage = CoverageOfAll();
  if (!coverage.ok()) return console.Report(coverage.error());
  console.Out(command.json       ? Json(coverage.value(), counts)
              : command.markdown ? Markdown(coverage.value(), counts)
                                 : Table(coverage.value(), counts));
  return 0;
}

}  // namespace tokamak
