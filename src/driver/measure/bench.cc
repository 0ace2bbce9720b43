#include "driver/measure/bench.h"

#include <algorithm>
#include <chrono>
#include <optional>

#include "driver/compile/fusion_options.h"
#include "driver/run/compiled_run.h"

namespace tokamak {
namespace {

constexpr double kRepetitionUs = 5000;  // minimum time of a sample (chosen: above clock noise)
// Maximum number of calls per sample (chosen: bounds very short programs).
constexpr int64_t kMostCalls = 100000;

double Micros(std::chrono::steady_clock::time_point since) {
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - since)
      .count();
}

// A compiled program with its arrays, to be called repeatedly.
class Contestant {
 public:
  static Result<Contestant> Make(const Module& module, std::span<const Value> arguments,
                                 const CompileOptions& options, BenchRow& row) {
    auto begin = std::chrono::steady_clock::now();
    TOK_TRY(CompiledRun run, CompiledRun::Make(module, options));
    row.compile_ms = Micros(begin) / 1000;
    row.launches = run.executable().Launches();
    row.host_steps = run.executable().HostSteps().size();
    TOK_TRY(HeldArrays held, run.Hold(arguments));
    Contestant made(std::move(run), std::move(held));
    if (made.run_.executable().device() != nullptr) {
      TOK_TRY(made.device_, DeviceArrays::Make(made.run_.executable(), made.held_.inputs(),
                                               made.held_.outputs()));
    }
    return made;
  }

  // Microseconds per call, averaged over `calls` calls.
  Result<double> Repeat(int64_t calls) {
    const Executable& program = run_.executable();
    auto begin = std::chrono::steady_clock::now();
    for (int64_t i = 0; i < calls; ++i) {
      CheckTally checks;
      RunControl control{.stop = nullptr, .checks = &checks};
      TOK_RETURN_IF_ERROR(device_ ? program.Issue(device_->inputs(), device_->outputs(), control)
                                  : program.Run(held_.inputs(), held_.outputs(), control));
    }
    if (device_) TOK_RETURN_IF_ERROR(program.device()->Synchronize());
    return Micros(begin) / static_cast<double>(calls);
  }

 private:
  Contestant(CompiledRun run, HeldArrays held) : run_(std::move(run)), held_(std::move(held)) {}

  CompiledRun run_;
  HeldArrays held_;
  std::optional<DeviceArrays> device_;
};

}  // namespace

Result<std::vector<BenchRow>> Bench(const Module& module, std::span<const Value> arguments,
                                    const BenchOptions& options, BenchWatcher& watcher) {
  std::vector<BenchRow> rows;
  std::vector<Contestant> contestants;
  auto options_of = [&](FusionMode mode) {
    CompileOptions compile;
    compile.backend = options.backend;
    compile.fusion = mode;
    compile.effort = options.effort;
    return compile;
  };
  // Compile once first, so that no mode is charged for one-time work of the process.
  watcher.Progress("compiling once");
  TOK_RETURN_IF_ERROR(CompiledRun::Make(module, options_of(options.modes.front())));
  for (FusionMode mode : options.modes) {
    watcher.Progress("compiling: " + std::string(NameOf(mode)));
    CompileOptions compile = options_of(mode);
    rows.emplace_back().mode = NameOf(mode);
    TOK_TRY(Contestant made, Contestant::Make(module, arguments, compile, rows.back()));
    contestants.push_back(std::move(made));
  }
  std::vector<int64_t> calls;
  double repetition_us = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    watcher.Progress("calling once: " + rows[i].mode);
    TOK_RETURN_IF_ERROR(contestants[i].Repeat(1));
    TOK_TRY(double us, contestants[i].Repeat(1));
    calls.push_back(std::clamp(static_cast<int64_t>(kRepetitionUs / std::max(us, 0.01)), int64_t{1},
                               kMostCalls));
    repetition_us += us * static_cast<double>(calls.back());
  }
  auto fitting = static_cast<int64_t>(options.seconds * 1e6 / std::max(repetition_us, 1.0));
  int64_t repetitions = std::clamp(fitting, int64_t{3}, std::max<int64_t>(options.repetitions, 3));
  for (int64_t repetition = 0; repetition < repetitions; ++repetition) {
    watcher.Progress("repetition " + std::to_string(repetition + 1) + " of " +
                     std::to_string(repetitions));
    for (size_t i = 0; i < rows.size(); ++i) {
      TOK_TRY(double us, contestants[i].Repeat(calls[i]));
      rows[i].us.push_back(us);
    }
  }
  for (BenchRow& row : rows) std::sort(row.us.begin(), row.us.end());
  return rows;
}

}  // namespace tokamak
