#include <algorithm>
#include <map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/json_error.h"
#include "ir/compare.h"
#include "ir/infer.h"
#include "text/bytecode_histogram.h"
#include "text/load.h"
#include "text/read.h"
#include "text/write.h"

// `tokamak check`: parses and verifies every program of its files.

namespace tokamak {
namespace {

using nlohmann::json;

std::map<std::string, int64_t> CountOps(const Module& module) {
  std::map<std::string, int64_t> counts;
  for (const auto& computation : module.computations())
    for (const Instr* instr : computation->Instrs()) ++counts[std::string(instr->info().name)];
  return counts;
}

// Prints the module with one writer and parses the output. Error positions refer to the printed
// text.
Status RoundTrip(const Module& module, bool hlo) {
  std::string text = hlo ? WriteHloText(module) : WriteStablehloText(module);
  std::string name = hlo ? "<as HLO text>" : "<as StableHLO text>";
  Result<std::unique_ptr<Module>> again = hlo ? ReadHloText(text, name) : ReadMlirText(text, name);
  if (!again.ok()) {
    Error error =
        MakeError(ErrorCode::kRoundTripDiffers,
                  name + " cannot be parsed again: " + again.error().message, again.error().where);
    error.notes.push_back("the line is: " + Render(again.error(), text));
    return error;
  }
  std::string difference = FirstDifference(module, *again.value());
  if (difference.empty()) return Ok();
  return MakeError(ErrorCode::kRoundTripDiffers,
                   name + " is another program when parsed again: " + difference,
                   {.file = module.file});
}

class CheckCommandRunner {
 public:
  CheckCommandRunner(const CheckCommand& command, Console& console)
      : command_(command), console_(console) {}

  int CheckFile(const std::string& path) {
    Result<LoadedFile> file = LoadFile(path, Verification::kNo);
    json result = {{"file", path}, {"programs", json::array()}};
    int exit = 0;
    if (!file.ok()) {
      exit = Fail(file.error(), {}, result);
    } else {
      result["format"] = file.value().format;
      exit = CountBytecode(file.value(), result);
      for (size_t i = 0; i < file.value().programs.size(); ++i)
        exit = std::max(exit, CheckProgram(file.value(), i, result));
    }
    result["exit"] = exit;
    if (command_.json) console_.Out(JsonLine(result));
    return exit;
  }

 private:
  int Fail(const Error& error, std::string_view source, json& result) {
    result["errors"].push_back(ToJson(error));
    if (command_.json) return Code(InfoOf(error.code).exit);
    // Finding a line is linear in the file: quote sources only for the first errors (chosen).
    constexpr int kMostExcerpts = 100;
    if (++failures_ > kMostExcerpts) source = {};
    return console_.Report(error, source);
  }

  // Counts the ops by their names in the bytecode, before they are imported.
  int CountBytecode(const LoadedFile& file, json& result) {
    if (!command_.histogram || !command_.json || !file.source().empty()) return 0;
    auto counts = BytecodeHistogram(file.bytes, file.path);
    if (!counts.ok()) return Fail(counts.error(), {}, result);
    result["bytecode_ops"] = counts.value();
    return 0;
  }

  int CheckProgram(const LoadedFile& file, size_t i, json& result) {
    const auto& program = file.programs[i];
    json entry = {{"read", program.ok()}, {"verified", false}};
    int exit = 0;
    if (program.ok()) {
      const Module& module = *program.value();
      Status verified = VerifyModule(module);
      entry["verified"] = verified.ok();
      if (!verified.ok()) exit = Fail(verified.error(), file.source(), entry);
      exit = std::max(exit, Summarize(file, i, module, entry));
    } else {
      exit = Fail(program.error(), file.source(), entry);
    }
    entry["exit"] = exit;
    result["programs"].push_back(std::move(entry));
    return exit;
  }

  int Summarize(const LoadedFile& file, size_t i, const Module& module, json& entry) {
    int exit = 0;
    if (command_.round_trip) {
      for (bool hlo : {true, false}) {
        Status status = RoundTrip(module, hlo);
        entry["round_trip"][hlo ? "hlo" : "mlir"] = status.ok();
        if (!status.ok()) exit = Fail(status.error(), {}, entry);
      }
    }
    entry["name"] = module.name();
    entry["computations"] = module.computations().size();
    entry["instructions"] = module.CountInstrs();
    if (command_.hash) entry["hash"] = fmt::format("{:016x}", StructuralHash(module));
    if (command_.histogram) entry["ops"] = CountOps(module);
    if (!command_.json && (entry["verified"].get<bool>() || command_.histogram || command_.hash))
      console_.Out(SummaryText(file, i, entry));
    return exit;
  }

  std::string SummaryText(const LoadedFile& file, size_t i, const json& entry) const {
    std::string text = file.path + ": ";
    if (file.programs.size() > 1)
      text += fmt::format("program {} of {}: ", i + 1, file.programs.size());
    auto counted = [](size_t n, const char* noun) {
      return fmt::format("{} {}{}", n, noun, n == 1 ? "" : "s");
    };
    text +=
        fmt::format("{}{}, {}, {}", entry["verified"].get<bool>() ? "" : "rejected: ", file.format,
                    counted(entry["computations"].get<size_t>(), "computation"),
                    counted(entry["instructions"].get<size_t>(), "instruction"));
    if (command_.hash) text += ", hash " + entry["hash"].get<std::string>();
    if (command_.round_trip) text += ", prints and parses back";
    text += "\n";
    if (!command_.histogram) return text;
    for (const auto& [name, count] : entry["ops"].items())
      text += fmt::format("{:8} {}\n", count.get<int64_t>(), name);
    return text;
  }

  const CheckCommand& command_;
  int failures_ = 0;
  Console& console_;
};

}  // namespace

int Check(const CheckCommand& command, Console& console) {
  CheckCommandRunner checker(command, console);
  int exit = 0;
  for (const std::string& file : command.files) exit = std::max(exit, checker.CheckFile(file));
  return exit;
}

}  // namespace tokamak
