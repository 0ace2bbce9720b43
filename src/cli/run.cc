#include <algorithm>
#include <chrono>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/json_error.h"
#include "driver/compile/backend.h"
#include "driver/compile/dump.h"
#include "driver/compile/host_calls.h"
#include "driver/compile/precision.h"
#include "driver/run/arguments.h"
#include "driver/run/compiled_run.h"
#include "driver/testing/corrupt_values.h"
#include "driver/testing/expect.h"
#include "interp/arguments.h"
#include "interp/interp.h"
#include "text/load.h"

// `tokamak run`: runs every program of a file and compares its results.

namespace tokamak {
namespace {

using nlohmann::json;
using Arrays = std::vector<std::pair<std::string, Literal>>;

// Printed results are truncated after this many elements (chosen).
constexpr int64_t kShownElements = 64;

struct Totals {
  int exit = 0;
  int64_t passed = 0, failed = 0, ran = 0, skipped = 0;
};

Error NoEntry(const Module& module, const std::string& file) {
  constexpr size_t kShown = 8;  // names (chosen: fits a line)
  std::vector<std::string> names;
  for (const auto& computation : module.computations())
    if (computation->is_public) names.push_back(computation->name());
  std::string list = names.empty() ? "none" : "";
  for (size_t i = 0; i < std::min(names.size(), kShown); ++i)
    list += (i == 0 ? "" : ", ") + names[i];
  if (names.size() > kShown) list += " ...";
  Error error =
      MakeError(ErrorCode::kNoEntry,
                fmt::format("run: the program has no function main, and {} public functions: {}",
                            names.size(), list),
                {.file = file});
  error.notes.push_back("rename the function to run to main, or make the others private");
  return error;
}

class RunCommandRunner : private ProgressListener {
 public:
  RunCommandRunner(const RunCommand& command, Console& console)
      : command_(command),
        console_(console),
        inputs_from_(command.inputs),
        outputs_to_(command.outputs) {}

  int RunAll() {
    Result<const BackendInfo*> backend = FindBackend(command_.backend);
    if (!backend.ok()) return console_.Report(backend.error());
    backend_ = backend.value();
    Status arrays = ReadArrays();
    if (!arrays.ok()) return console_.Report(arrays.error());
    int exit = 0;
    for (const std::string& file : command_.files)
      exit = std::max(exit, command_.batch ? RunBatch(file) : RunFile(file));
    return exit;
  }

 private:
  // Runs a list of programs with individual inputs and outputs.
  int RunBatch(const std::string& path) {
    Result<Bytes> bytes = ReadFileBytes(path);
    if (!bytes.ok()) return console_.Report(bytes.error());
    json list = json::parse(bytes.value().text(), nullptr, false);
    auto is_entry = [](const json& entry) {
      return entry.is_object() && entry.contains("file") &&
             std::all_of(entry.begin(), entry.end(), [](const json& at) { return at.is_string(); });
    };
    if (!list.is_array() || !std::all_of(list.begin(), list.end(), is_entry))
      return console_.Report(
          MakeError(ErrorCode::kUsage,
                    path + R"(: not a list of {"file": F, "inputs": F.npz, "outputs": F.npz})"));
    int exit = 0;
    for (const json& entry : list) {
      inputs_from_ = entry.value("inputs", command_.inputs);
      outputs_to_ = entry.value("outputs", command_.outputs);
      exit = std::max(exit, RunFile(entry["file"].get<std::string>()));
    }
    return exit;
  }

  Status ReadInputs() {
    if (inputs_from_.empty()) return Ok();
    TOK_TRY(Bytes bytes, ReadFileBytes(inputs_from_));
    TOK_TRY(inputs_, ReadNpz(bytes, inputs_from_));
    return Ok();
  }

  Status ReadArrays() {
    TOK_RETURN_IF_ERROR(ReadInputs());
    if (!command_.expect.empty()) {
      TOK_TRY(Bytes bytes, ReadFileBytes(command_.expect));
      TOK_TRY(expect_, ReadNpz(bytes, command_.expect));
    }
    return Ok();
  }

  int RunFile(const std::string& path) {
    totals_ = {};
    json result = {{"file", path}, {"programs", json::array()}};
    Status arrays = command_.batch ? ReadInputs() : Ok();
    Result<LoadedFile> file = LoadFile(path, Verification::kYes);
    if (!arrays.ok()) {
      totals_.exit = Fail(arrays.error(), {}, result);
    } else if (!file.ok()) {
      totals_.exit = Fail(file.error(), {}, result);
    } else {
      several_ = file.value().programs.size() > 1;
      for (size_t i = 0; i < file.value().programs.size(); ++i) {
        json entry = {{"checks", 0}};
        int exit = RunProgram(file.value(), i, entry);
        entry["exit"] = exit;
        totals_.exit = std::max(totals_.exit, exit);
        result["programs"].push_back(std::move(entry));
      }
      PrintChecks();
    }
    result["exit"] = totals_.exit;
    result["checks"] = totals_.passed;
    if (command_.json) console_.Out(JsonLine(result));
    return totals_.exit;
  }

  void PrintChecks() {
    if (command_.json) return;
    // An error before the first check: nothing to count.
    if (totals_.exit != 0 && totals_.passed + totals_.failed == 0 && !several_) return;
    std::string text = fmt::format("checks: {} passed", totals_.passed);
    if (totals_.failed > 0) text += fmt::format(", {} failed", totals_.failed);
    if (several_)
      text += fmt::format(" ({} programs, {} without a function)", totals_.ran + totals_.skipped,
                          totals_.skipped);
    console_.Out(text + "\n");
  }

  int Fail(const Error& error, std::string_view source, json& entry) {
    entry["errors"].push_back(ToJson(error));
    if (command_.json) return Code(InfoOf(error.code).exit);
    return console_.Report(error, source);
  }

  int RunProgram(const LoadedFile& file, size_t i, json& entry) {
    const auto& program = file.programs[i];
    if (!program.ok()) return Fail(program.error(), file.source(), entry);
    const Module& module = *program.value();
    if (module.entry() == nullptr && module.computations().empty()) {
      ++totals_.skipped;
      entry["skipped"] = true;
      return 0;
    }
    ++totals_.ran;
    if (module.entry() == nullptr) return Fail(NoEntry(module, file.path), {}, entry);
    if (command_.corrupt) {
      CorruptionCount count = CorruptExpected(*program.value());
      entry["corrupted"] = count.corrupted;
      entry["unspoiled"] = count.untouched;
    }
    if (command_.precision == "highest") AskForPrecision(*program.value());
    Result<std::vector<Value>> arguments = Arguments(module);
    if (!arguments.ok()) return Fail(arguments.error(), {}, entry);
    Result<RunOutcome> outcome = Execute(module, arguments.value(), entry);
    if (!outcome.ok()) return Fail(outcome.error(), file.source(), entry);
    int exit = CompareResults(module, file.source(), outcome.value(), i, entry);
    if (!command_.expect.empty())
      exit = std::max(exit, CompareAll(module, arguments.value(), outcome.value(), entry));
    return exit;
  }

  Result<std::vector<Value>> Arguments(const Module& module) const {
    const Computation& entry = *module.entry();
    if (!inputs_from_.empty()) return ArgumentsFrom(inputs_, entry);
    if (command_.seed) return DrawArguments(*command_.seed, entry);
    std::vector<Shape> shapes = FlattenParameters(entry);
    if (shapes.empty()) return DrawArguments(0, entry);
    // With --repeat or --explain the values matter less: random arguments suffice.
    if (command_.expect.empty() && (command_.repeat > 1 || command_.explain)) {
      console_.Err("note: random arguments (--seed 0); use --inputs F.npz for others\n");
      return DrawArguments(0, entry);
    }
    return MakeError(
        ErrorCode::kNoInputs,
        fmt::format("run: the program takes in_0 ({}){}; give --inputs FILE.npz, or "
                    "--seed N for random ones",
                    ToString(shapes[0].WithoutLayout()),
                    shapes.size() > 1 ? fmt::format(" ... in_{}", shapes.size() - 1) : ""),
        {.file = module.file});
  }

  // Programs that only the interpreter can run are interpreted, unless a backend was named.
  bool IsCompiled(const Module& module) const {
    if (backend_->name == "interp") return false;
    bool special = command_.oracle || command_.flush_subnormals ||
                   module.num_replicas * module.num_partitions > 1 ||
                   module.entry()->root()->shape().HasDynamicDims();
    return !special || !command_.backend.empty();
  }

  Result<RunOutcome> Execute(const Module& module, const std::vector<Value>& arguments,
                             json& entry) {
    RunOptions options;
    options.host_calls = &RegisteredHostCalls();
    options.mode = command_.oracle ? NumericMode::kOracle : NumericMode::kReference;
    options.flush_subnormals = command_.flush_subnormals;
    if (console_.ShowsProgress()) options.progress = this;
    bool compiled = IsCompiled(module);
    if (command_.explain && !compiled) console_.Err("the whole program is interpreted\n");
    std::optional<CompiledRun> program;
    if (compiled) {
      CompileOptions compile;
      compile.backend = backend_->name;
      compile.dump_dir = DumpDirOfEnvironment();
      compile.require_kernels = command_.strict;
      compile.corrupt_kernel = command_.corrupt_kernel;
      TOK_RETURN_IF_ERROR(SetFusion(compile, command_.fusion));
      compile.strict |= command_.strict;
      compile.hoist = command_.hoist;
      TOK_TRY(program, CompiledRun::Make(module, compile));
      if (command_.explain) ExplainBeside(program->executable(), console_);
      entry["launches"] = program->executable().Launches();
      entry["host_steps"] = program->executable().HostSteps();
      entry["codegen_fallbacks"] = program->executable().codegen_fallbacks();
      for (const std::string& text : program->executable().codegen_fallbacks())
        console_.Err("warning: " + text + "\n");
    }
    std::vector<double> times;
    std::optional<Result<RunOutcome>> first;
    for (int64_t turn = 0; turn < std::max<int64_t>(command_.repeat, 1); ++turn) {
      auto begin = std::chrono::steady_clock::now();
      Result<RunOutcome> outcome =
          program ? program->Run(arguments) : Interpret(module, arguments, options);
      std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - begin;
      times.push_back(elapsed.count());
      if (!outcome.ok()) return outcome;
      if (first && NameResults(first->value().results, *module.entry()) !=
                       NameResults(outcome.value().results, *module.entry()))
        return MakeError(
            ErrorCode::kNotDeterministic,
            fmt::format("run: results of repetition {} differ from those of repetition 1",
                        turn + 1));
      if (!first) first = std::move(outcome);
    }
    ClearProgress();
    std::sort(times.begin(), times.end());
    entry["seconds"] = times[times.size() / 2];
    if (command_.repeat > 1 && !command_.json)
      console_.Out(fmt::format("time: {:.6f} s min, {:.6f} s median, {:.6f} s max of {} runs\n",
                               times.front(), times[times.size() / 2], times.back(), times.size()));
    return std::move(*first);
  }

  void OnProgress(int64_t done, int64_t total) override {
    auto now = std::chrono::steady_clock::now();
    if (now - shown_ < std::chrono::milliseconds(200)) return;
    shown_ = now;
    progress_shown_ = true;
    console_.Err(fmt::format("\r{} of {} instructions\x1b[K", done, total));
  }
  void ClearProgress() {
    if (progress_shown_) console_.Err("\r\x1b[K");
    progress_shown_ = false;
  }

  int CompareResults(const Module& module, std::string_view source, const RunOutcome& outcome,
                     size_t i, json& entry) {
    totals_.passed += outcome.checks_passed;
    totals_.failed += static_cast<int64_t>(outcome.failures.size());
    entry["checks"] = outcome.checks_passed;
    int exit = 0;
    for (const Error& failure : outcome.failures)
      exit = std::max(exit, Fail(failure, source, entry));
    Arrays results = NameResults(outcome.results, *module.entry());
    if (!outputs_to_.empty()) {
      Status written = WriteFileBytes(outputs_to_, WriteNpz(results));
      if (!written.ok()) exit = std::max(exit, Fail(written.error(), {}, entry));
    }
    if (outputs_to_.empty() && command_.expect.empty() && !command_.json) Print(results, i);
    return exit;
  }

  void Print(const Arrays& results, size_t i) {
    for (const auto& [name, literal] : results) {
      std::string prefix = several_ ? fmt::format("program {}: ", i + 1) : "";
      console_.Out(prefix + name + ": " + ArrayText(literal, kShownElements) + "\n");
    }
  }

  int CompareAll(const Module& module, const std::vector<Value>& arguments,
                 const RunOutcome& outcome, json& entry) {
    ExpectOptions options{.tolerance = command_.tolerance,
                          .strict = command_.strict || command_.oracle || command_.flush_subnormals,
                          .is_interpreted = !IsCompiled(module)};
    ExpectOutcome compared =
        CompareWithExpected(expect_, module, arguments, outcome.results, options);
    int exit = 0;
    for (const Error& fault : compared.mismatches) exit = std::max(exit, Fail(fault, {}, entry));
    for (const std::string& note : compared.notes) {
      entry["notes"].push_back(note);
      if (!command_.json) console_.Out("note: " + note + "\n");
    }
    return exit;
  }

  const RunCommand& command_;
  const BackendInfo* backend_ = nullptr;
  Console& console_;
  std::string inputs_from_, outputs_to_;  // of the current file
  NpzFile inputs_, expect_;
  Totals totals_;
  bool several_ = false, progress_shown_ = false;
  std::chrono::steady_clock::time_point shown_;
};

}  // namespace

int Run(const RunCommand& command, Console& console) {
  return RunCommandRunner(command, console).RunAll();
}

}  // namespace tokamak
