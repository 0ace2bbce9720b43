#include <algorithm>
#include <chrono>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/json_error.h"
#include "cli/programs.h"
#include "driver/compile/pass_target.h"
#include "driver/testing/same_values.h"
#include "interp/arguments.h"
#include "interp/interp.h"
#include "passes/passes.h"
#include "text/npz.h"

// `tokamak bisect`: runs the passes one at a time and the program after each of them.

namespace tokamak {
namespace {

using nlohmann::json;

// The number of records that a pass left, by rule.
std::string RulesOf(const DecisionLog& log, size_t begin) {
  std::vector<std::pair<std::string_view, size_t>> counts;
  for (size_t i = begin; i < log.all().size(); ++i) {
    auto it =
        std::ranges::find(counts, log.all()[i].rule, &std::pair<std::string_view, size_t>::first);
    if (it == counts.end()) it = counts.insert(counts.end(), {log.all()[i].rule, 0});
    ++it->second;
  }
  std::string text;
  for (const auto& [rule, count] : counts)
    text += fmt::format("{}{} ({}x)", text.empty() ? "" : ", ", rule, count);
  return text;
}

class ByValues final : public PipelineListener {
 public:
  ByValues(const Proof& proof, const DecisionLog& log) : proof_(proof), log_(log) {}

  void AfterPass(const Module& module, const PassRun& run) override {
    size_t begin = seen_;
    seen_ = log_.all().size();
    if (!difference.empty() || run.changed == Changed::kNo) return;
    rounded = rounded || MayRound(run.pass);
    difference = rounded ? proof_.CompareClosely(module) : proof_.Compare(module);
    if (difference.empty()) return;
    pass = InfoOf(run.pass).name;
    iteration = run.iteration;
    rules = RulesOf(log_, begin);
  }

  std::string difference, rules;
  std::string_view pass;
  int64_t iteration = 0;
  bool rounded = false;  // a pass that may round has changed something: bits may differ

 private:
  const Proof& proof_;
  const DecisionLog& log_;
  size_t seen_ = 0;
};

// The minimum of three runs in ms; negative if it does not run.
double MillisOf(const Module& module) {
  Result<std::vector<Value>> arguments = DrawArguments(1, *module.entry());
  if (!arguments.ok()) return -1;
  double least = -1;
  for (int i = 0; i < 3; ++i) {
    auto begin = std::chrono::steady_clock::now();
    if (!Interpret(module, arguments.value()).ok()) return -1;
    double ms =
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
    least = least < 0 ? ms : std::min(least, ms);
  }
  return least;
}

class ByTime final : public PipelineListener {
 public:
  explicit ByTime(const Module& module) : last_(MillisOf(module)) {
    text = fmt::format("{:<28} {:>9} {:>12} {:>8}\n{:<28} {:>9} {:>12.3f}\n", "after", "iteration",
                       "run ms", "factor", "(nothing)", "", last_);
  }

  void AfterPass(const Module& module, const PassRun& run) override {
    if (run.changed == Changed::kNo) return;
    double ms = MillisOf(module);
    double factor = last_ > 0 ? ms / last_ : 1;
    text += fmt::format("{:<28} {:>9} {:>12.3f} {:>8.2f}\n", InfoOf(run.pass).name,
                        run.iteration + 1, ms, factor);
    rows.push_back({{"pass", InfoOf(run.pass).name}, {"iteration", run.iteration}, {"run_ms", ms}});
    if (factor > worst) {
      worst = factor;
      pass = InfoOf(run.pass).name;
    }
    last_ = ms;
  }

  std::string text;
  json rows = json::array();
  double worst = 1.1;  // slowdown factor; less is noise (chosen)
  std::string_view pass;

 private:
  double last_;
};

class Bisection {
 public:
  Bisection(const BisectCommand& command, const Pipeline& pipeline, const NpzFile* inputs,
            Console& console)
      : command_(command),
        pipeline_(pipeline),
        inputs_(inputs),
        console_(console),
        target_(command.target) {}

  int Run(Module& module) {
    for (const std::string& name : command_.skip)
      if (std::optional<Pass> pass = PassFromName(name)) options_.skip.push_back(*pass);
    PassContext context(log_, {}, {.strict = command_.strict}, target_.ForPasses());
    if (module.entry() == nullptr) return 0;
    return command_.by == "time" ? Time(module, context) : Values(module, context);
  }

 private:
  int Time(Module& module, PassContext& context) {
    ByTime times(module);
    options_.listener = &times;
    auto runs = RunPasses(module, pipeline_, context, options_);
    if (!runs.ok()) return console_.Report(runs.error());
    if (command_.json) {
      console_.Out(JsonLine({{"by", "time"}, {"runs", times.rows}, {"slower_after", times.pass}}));
      return 0;
    }
    console_.Out(times.text);
    console_.Out(times.pass.empty()
                     ? std::string("no pass makes the program slower\n")
                     : fmt::format("slowest step: {}, {:.2f}x\n", times.pass, times.worst));
    return 0;
  }

  int Values(Module& module, PassContext& context) {
    ProofOptions proof_options;
    proof_options.seconds = command_.seconds;
    proof_options.inputs = inputs_;
    Proof proof(module, proof_options);
    if (!proof.why_not().empty())
      return console_.Report(MakeError(ErrorCode::kUnsupportedOp,
                                       "bisect: nothing to compare: " + proof.why_not(),
                                       {.file = module.file}));
    ByValues values(proof, log_);
    options_.listener = &values;
    auto runs = RunPasses(module, pipeline_, context, options_);
    if (!runs.ok()) return console_.Report(runs.error());
    if (command_.json)
      console_.Out(JsonLine({{"by", "values"},
                             {"pass", values.pass},
                             {"iteration", values.iteration},
                             {"rules", values.rules},
                             {"difference", values.difference}}));
    if (values.difference.empty()) {
      if (!command_.json)
        console_.Out(fmt::format(
            "{} runs of the program, {} passes: {}\n", proof.runs(), runs.value().size(),
            values.rounded ? "the values stay within rounding" : "the bits are unchanged"));
      return 0;
    }
    Error error = MakeError(ErrorCode::kPassChangedValues,
                            fmt::format("pass {} (iteration {}): {}", values.pass,
                                        values.iteration + 1, values.difference),
                            {.file = module.file});
    error.notes.push_back("it did: " + values.rules);
    return console_.Report(error);
  }

  const BisectCommand& command_;
  const Pipeline& pipeline_;
  const NpzFile* inputs_;
  Console& console_;
  NamedTarget target_;
  DecisionLog log_;
  PipelineOptions options_;
};

}  // namespace

int Bisect(const BisectCommand& command, Console& console) {
  Result<Pipeline> pipeline = ParsePipeline(PassesFor(command.target, command.passes));
  if (!pipeline.ok()) return console.Report(pipeline.error());
  for (const std::string& name : command.skip)
    if (Result<Pipeline> one = ParsePipelineUnchecked(name); !one.ok())
      return console.Report(one.error());
  NpzFile inputs;
  if (!command.inputs.empty()) {
    Result<Bytes> bytes = ReadFileBytes(command.inputs);
    if (!bytes.ok()) return console.Report(bytes.error());
    Result<NpzFile> npz = ReadNpz(bytes.value(), command.inputs);
    if (!npz.ok()) return console.Report(npz.error());
    inputs = std::move(npz).value();
  }
  return ForEachProgram(command.file, console, [&](Module& program, std::string_view) {
    return Bisection(command, pipeline.value(), command.inputs.empty() ? nullptr : &inputs, console)
        .Run(program);
  });
}

}  // namespace tokamak
