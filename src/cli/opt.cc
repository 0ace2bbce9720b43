#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/json_error.h"
#include "cli/usage.h"
#include "driver/compile/fusion_options.h"
#include "driver/compile/lower_module.h"
#include "driver/compile/pass_target.h"
#include "driver/compile/user_rules.h"
#include "driver/plugins/compile_extensions.h"
#include "driver/testing/same_values.h"
#include "ir/clone.h"
#include "passes/passes.h"
#include "text/load.h"
#include "text/npz.h"
#include "text/write.h"

// `tokamak opt`: runs passes, shows what they did, and checks that they preserve values.

namespace tokamak {
namespace {

using nlohmann::json;

json ToJson(const PassRun& run) {
  return {{"pass", InfoOf(run.pass).name},
          {"iteration", run.iteration},
          {"instructions", run.instrs_before},
          {"after", run.instrs_after},
          {"changed", run.changed == Changed::kYes},
          {"changes", run.changes},
          {"ms", run.ms}};
}

json ToJson(const Decision& decision) {
  json entry = {{"pass", decision.pass},
                {"rule", decision.rule},
                {"verdict", NameOf(decision.verdict)},
                {"subject", decision.subject}};
  if (!decision.other.empty()) entry["other"] = decision.other;
  if (!decision.because.empty()) entry["because"] = decision.because;
  return entry;
}

Result<std::vector<Pass>> ParsePasses(const std::vector<std::string>& names) {
  std::vector<Pass> passes;
  for (const std::string& name : names) {
    TOK_TRY(Pipeline one, ParsePipelineUnchecked(name));
    for (const Step& step : one) passes.push_back(step.pass);
  }
  return passes;
}

// Prints the program after the requested passes.
class Dumper final : public PipelineListener {
 public:
  Dumper(const std::vector<Pass>& after, Console& console) : after_(after), console_(console) {}
  void AfterPass(const Module& module, const PassRun& run) override {
    if (std::ranges::count(after_, run.pass) == 0) return;
    console_.Out(fmt::format("// after {}, iteration {}: {}\n{}\n", InfoOf(run.pass).name,
                             run.iteration + 1,
                             run.changed == Changed::kYes ? fmt::format("{} changes", run.changes)
                                                          : std::string("(unchanged)"),
                             WriteHloText(module)));
  }

 private:
  const std::vector<Pass>& after_;
  Console& console_;
};

struct Plan {
  CompileOptions rules;  // with --user-rules: options of the plans that are compared
  Target target;
  Pipeline pipeline;
  PipelineOptions options;
  std::vector<Pass> dump_after;
  LiftedRules lifted;
  bool is_planned = true;
  NpzFile inputs;
};

Result<Plan> PlanOf(const OptCommand& command) {
  Plan plan;
  TOK_TRY(plan.pipeline, ParsePipeline(PassesFor(command.target, command.passes)));
  if (!command.fusion.empty()) {
    TOK_TRY(FusionMode mode, ParseFusionMode(command.fusion));
    plan.is_planned = mode != FusionMode::kXlaPasses && mode != FusionMode::kNone;
    if (mode == FusionMode::kXlaPasses)
      plan.pipeline.insert(plan.pipeline.end(), std::begin(kPaperPipeline),
                           std::end(kPaperPipeline));
  }
  TOK_TRY(plan.lifted, ParseLifted(command.lift));
  TOK_RETURN_IF_ERROR(AddRules(plan.rules, command.rules));
  plan.rules.passes = plan.pipeline;
  if (!plan.rules.rules.empty()) {
    TOK_TRY(plan.target, TargetNamed(command.target.empty() ? "host" : command.target));
  }
  TOK_TRY(plan.options.skip, ParsePasses(command.skip));
  TOK_TRY(plan.dump_after, ParsePasses(command.dump_after));
  if (!command.stop_after.empty()) {
    TOK_TRY(std::vector<Pass> last, ParsePasses({command.stop_after}));
    plan.options.stop_after = last.front();
  }
  plan.options.verify_each = command.verify_each || kVerifyByDefault;
  if (!command.inputs.empty()) {
    TOK_TRY(Bytes bytes, ReadFileBytes(command.inputs));
    TOK_TRY(plan.inputs, ReadNpz(bytes, command.inputs));
  }
  return plan;
}

class Optimizer {
 public:
  Optimizer(const OptCommand& command, const Plan& plan, Console& console)
      : command_(command), plan_(plan), console_(console) {}

  // The program after the passes, or their error.
  Result<std::string> Run(std::unique_ptr<Module> module) {
    json entry = {{"name", module->name()}};
    std::optional<Proof> proof;
    if (command_.check_values || command_.check_each) {
      ProofOptions options;
      options.seconds = command_.seconds;
      if (!command_.inputs.empty()) options.inputs = &plan_.inputs;
      proof.emplace(*module, options);
      if (!proof->why_not().empty()) entry["not_compared"] = proof->why_not();
    }
    if (command_.check_each) TOK_RETURN_IF_ERROR(CheckEach(*module, *proof, entry));
    DecisionLog log;
    NamedTarget target(command_.target, command_.vector_bits);
    std::vector<Value> added;
    std::optional<RuleSession> rules = RuleSession::Of(plan_.target, plan_.rules);
    PassOptions switches = Switches(added);
    switches.user_rules = rules ? &*rules : nullptr;
    PassContext context(log, {}, switches, TargetFor(target));
    Dumper dumper(plan_.dump_after, console_);
    PipelineOptions options = plan_.options;
    if (!plan_.dump_after.empty()) options.listener = &dumper;
    std::shared_ptr<CompileExtensions> extensions =
        MakeExtensions(CurrentPluginMode(), context.target.kind,
                       context.target.machine == nullptr ? Machine{} : *context.target.machine);
    TOK_TRY(std::vector<PassRun> runs,
            RunWithPlugins(module, plan_.pipeline, context, options, extensions.get()));
    if (extensions != nullptr) extensions->LogUnusedPasses(*module, log);
    if (command_.decisions)
      for (const Decision& decision : log.all()) console_.Err(ToString(decision) + "\n");
    bool rounded = (extensions != nullptr && extensions->rounded()) ||
                   std::ranges::any_of(runs, [](const PassRun& run) {
                     return run.changed == Changed::kYes && MayRound(run.pass);
                   });
    if (command_.check_values) {
      std::string difference = Difference(*proof, *module, added, rounded);
      TOK_RETURN_IF_ERROR(CheckAll(*module, *proof, difference, entry));
    }
    if (command_.time_passes && !command_.json) console_.Out(RenderRuns(runs));
    if (command_.json) {
      for (const PassRun& run : runs) entry["passes"].push_back(ToJson(run));
      entry["decisions"] = json::array();
      for (const Decision& decision : log.all()) entry["decisions"].push_back(ToJson(decision));
      result_["programs"].push_back(std::move(entry));
    }
    return WriteHloText(*module);
  }

  const json& result() const { return result_; }

 private:
  PassOptions Switches(std::vector<Value>& added) const {
    return {.strict = command_.strict, .lifted = plan_.lifted, .added = &added};
  }

  PassTarget TargetFor(const NamedTarget& named) const {
    PassTarget target = named.ForPasses();
    target.is_planned = plan_.is_planned;
    return target;
  }

  static std::string Difference(const Proof& proof, const Module& after,
                                std::span<const Value> added, bool rounded) {
    return rounded ? proof.CompareClosely(after, added) : proof.Compare(after, added);
  }

  Status CheckAll(const Module& after, const Proof& proof, const std::string& difference,
                  json& entry) {
    if (!proof.why_not().empty()) return Ok();
    entry["values"] = difference.empty() ? "same" : difference;
    if (difference.empty()) return Ok();
    return Differs(ToString(plan_.pipeline), difference, after);
  }

  static Error Differs(const std::string& passes, const std::string& difference,
                       const Module& module) {
    Error error =
        MakeError(ErrorCode::kPassChangedValues, fmt::format("passes {}: {}", passes, difference),
                  {.file = module.file});
    error.notes.push_back("`tokamak bisect --by values` names the pass");
    return error;
  }

  // Runs each pass alone on the original program.
  Status CheckEach(const Module& module, const Proof& proof, json& entry) {
    std::string first;
    std::unique_ptr<Module> last;
    if (!command_.json)
      console_.Out(fmt::format("{:<28} {:>9} {:>10} {:>10}  {}\n", "pass alone", "changes", "ms",
                               "instrs", "values"));
    for (size_t i = 0; i < kPasses.size(); ++i) {
      Step step{static_cast<Pass>(i)};
      NamedTarget target(command_.target, command_.vector_bits);
      if (!IsFor(step.pass, target.ForPasses().kind)) continue;
      std::unique_ptr<Module> copy = CloneModule(module);
      DecisionLog log;
      std::vector<Value> added;
      PassContext context(log, {}, Switches(added), TargetFor(target));
      PipelineOptions options;
      options.verify_each = true;
      TOK_TRY(std::vector<PassRun> runs, RunPasses(*copy, {&step, 1}, context, options));
      if (runs.empty()) continue;  // disabled by these options
      std::string difference;
      std::string verdict = "not compared";
      if (proof.why_not().empty()) {
        if (runs[0].changed == Changed::kYes)
          difference = Difference(proof, *copy, added, MayRound(step.pass));
        verdict = difference.empty() ? "same" : difference;
      }
      json row = ToJson(runs[0]);
      row["values"] = verdict;
      entry["each"].push_back(std::move(row));
      if (!command_.json)
        console_.Out(fmt::format("{:<28} {:>9} {:>10.3f} {:>10}  {}\n", kPasses[i].name,
                                 runs[0].changes, runs[0].ms, runs[0].instrs_after, verdict));
      if (!difference.empty() && first.empty()) {
        first = fmt::format("{}", kPasses[i].name);
        last = std::move(copy);
        return Differs(first, difference, *last);
      }
    }
    return Ok();
  }

  const OptCommand& command_;
  const Plan& plan_;
  Console& console_;
  json result_;
};

int List(Console& console) {
  std::string text;
  for (const PassInfo& info : kPasses)
    text += fmt::format("{:<28} {:<36} {}\n", info.name, PredicateOf(info), info.meaning);
  text += "\nentry: " + ToString(kEntryPipeline) + "\n";
  text += "\nbefore it, with run --hoist: " + ToString(kHoistPipeline) + "\n";
  text += "\ndefault: " + ToString(kDefaultPipeline) + "\n";
  text += "\ncpu: " + ToString(kCpuPipeline) + "\n";
  text += "\ngpu: " + ToString(kGpuPipeline) + "\n";
  console.Out(text);
  return 0;
}

}  // namespace

int Opt(const OptCommand& command, Console& console) {
  if (command.list) return List(console);
  if (command.file.empty()) return console.Report(FileMissing("opt"));
  Result<Plan> plan = PlanOf(command);
  if (!plan.ok()) return console.Report(plan.error());
  if (command.explain) {
    FusionWords fusion;
    if (!command.fusion.empty()) fusion.mode = command.fusion;
    fusion.lift = command.lift;
    if (int exit = ExplainFileBeside(command.file, fusion, console); exit != 0) return exit;
  }
  Result<LoadedFile> file = LoadFile(command.file, Verification::kYes);
  if (!file.ok()) return console.Report(file.error());
  Optimizer optimizer(command, plan.value(), console);
  int exit = 0;
  std::string text;
  for (auto& program : file.value().programs) {
    if (!program.ok()) {
      exit = std::max(exit, console.Report(program.error(), file.value().source()));
      continue;
    }
    Result<std::string> done = optimizer.Run(std::move(program).value());
    if (!done.ok()) {
      exit = std::max(exit, console.Report(done.error(), file.value().source()));
      continue;
    }
    if (!text.empty()) text += "\n// -----\n\n";
    text += done.value();
  }
  if (command.json) {
    json result = optimizer.result();
    result["file"] = command.file;
    result["exit"] = exit;
    console.Out(JsonLine(result));
    if (command.output == "-") return exit;
  }
  if (command.output == "-") {
    if (!command.time_passes && !command.check_each) console.Out(text);
    return exit;
  }
  if (exit != 0) return exit;
  Status written = WriteFileBytes(command.output, text);
  return written.ok() ? exit : console.Report(written.error());
}

}  // namespace tokamak
