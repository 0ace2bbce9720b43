// Passes of plugins. A pass changes a copy of the module, which replaces the module if the pass
// ends in order and the copy verifies.

#include <algorithm>
#include <chrono>

#include <fmt/format.h>

#include "driver/plugins/callback.h"
#include "driver/plugins/check_values.h"
#include "driver/plugins/compile_extensions.h"
#include "driver/plugins/host_table.h"
#include "ir/clone.h"
#include "ir/infer.h"
#include "passes/passes.h"
#include "support/interned.h"

namespace tokamak {
namespace {

constexpr Step kCleanUp[] = {{Pass::kDce}};

class PassCall final : public PluginCallback {
 public:
  PassCall(const PluginPass& pass, const Module& module) : entry_(pass.entry) {
    graph.module = CloneModuleInOrder(module);
    graph.pass = Interned(pass.name);
  }
  void Call() override {
    GraphScope scope(graph);
    changes = entry_.run(InC(graph), entry_.user);
  }

  PassGraph graph;
  int changes = 0;

 private:
  tok_pass entry_;
};

Error PluginError(ErrorCode code, std::string message, const Module& module) {
  return MakeError(code, std::move(message), {.file = module.file});
}

// The end of the step, or repeated group of steps, that contains this one.
size_t EndOfGroup(std::span<const Step> steps, size_t at) {
  uint8_t group = steps[at].group;
  while (group != 0 && at + 1 < steps.size() && steps[at + 1].group == group) ++at;
  return at + 1;
}

std::string WhyOtherInterface(const Module& before, const Module& after) {
  const Computation *old = before.entry(), *now = after.entry();
  if (now == nullptr) return "the program has no entry any more";
  if (old->parameters().size() != now->parameters().size())
    return fmt::format("the entry has {} parameters, not {}", now->parameters().size(),
                       old->parameters().size());
  for (size_t i = 0; i < old->parameters().size(); ++i)
    if (!(old->parameter(i)->shape() == now->parameter(i)->shape()))
      return fmt::format("parameter {} is {}, not {}", i, ToString(now->parameter(i)->shape()),
                         ToString(old->parameter(i)->shape()));
  if (!(old->root()->shape() == now->root()->shape()))
    return fmt::format("the result is {}, not {}", ToString(now->root()->shape()),
                       ToString(old->root()->shape()));
  return "";
}

}  // namespace

std::vector<const PluginPass*> CompileExtensions::PassesIn(std::span<const Step> steps) const {
  std::vector<const PluginPass*> passes;
  for (const PluginPass& pass : all_->passes)
    if (IsForTarget(pass.entry.targets) && IsUsable(pass) && !done_.contains(&pass) &&
        std::ranges::count(steps, pass.after, &Step::pass) > 0)
      passes.push_back(&pass);
  return passes;
}

Result<std::vector<PassRun>> CompileExtensions::RunPasses(std::unique_ptr<Module>& module,
                                                          std::span<const Step> steps,
                                                          PassContext& context,
                                                          const PipelineOptions& options) {
  std::vector<PassRun> runs;
  bool stopped = false;  // by options.stop_after, which `opt` sets
  size_t begin = 0;
  auto run_until = [&](size_t end) -> Status {
    if (end <= begin || stopped) return Ok();
    TOK_TRY(std::vector<PassRun> own,
            tokamak::RunPasses(*module, steps.subspan(begin, end - begin), context, options));
    stopped =
        options.stop_after && std::ranges::count(own, *options.stop_after, &PassRun::pass) > 0;
    runs.insert(runs.end(), own.begin(), own.end());
    begin = end;
    return Ok();
  };
  std::vector<const PluginPass*> passes = PassesIn(steps);
  for (size_t i = 0; i < steps.size() && !stopped; ++i) {
    for (const PluginPass* pass : passes) {
      bool is_strict = pass->entry.may_round != 0 && context.options.strict;
      if (steps[i].pass != pass->after || is_strict || !done_.insert(pass).second) continue;
      TOK_RETURN_IF_ERROR(run_until(EndOfGroup(steps, i)));
      if (!stopped) TOK_RETURN_IF_ERROR(RunOne(module, *pass, context));
    }
  }
  TOK_RETURN_IF_ERROR(run_until(steps.size()));
  LogTo(context.log);
  return runs;
}

Status CompileExtensions::RunOne(std::unique_ptr<Module>& module, const PluginPass& pass,
                                 PassContext& context) {
  auto begin = std::chrono::steady_clock::now();
  auto call = std::make_shared<PassCall>(pass, *module);
  std::chrono::milliseconds limit =
      pass.entry.limit_ms == 0 ? kCallbackTime : std::chrono::milliseconds(pass.entry.limit_ms);
  CallOutcome outcome = Invoke(call, limit);
  if (!outcome.ok()) {
    Fail(pass, "pass", PluginError(ErrorCode::kPluginFailed, outcome.why, *module),
         outcome.is_abandoned);
    return status();
  }
  if (call->changes < 0) {
    std::string text = fmt::format("it returned {}", call->changes);
    Fail(pass, "pass", PluginError(ErrorCode::kPluginFailed, text, *module), false);
    return status();
  }
  std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begin;
  std::string what = fmt::format("{} of the plugin {}: {} changes in {:.3f} ms", pass.name,
                                 pass.plugin->name, call->changes, took.count());
  if (!call->graph.edited) {
    context.log.Add({.pass = Interned(pass.name),
                     .rule = "plugin.pass",
                     .verdict = Verdict::kRejected,
                     .subject = module->name(),
                     .because = what});
    return Ok();
  }
  Error bad = WhyNotAdopted(*module, *call->graph.module, pass);
  if (!bad.message.empty()) {
    Fail(pass, "pass", std::move(bad), false);
    return status();
  }
  module = std::move(call->graph.module);
  rounded_ |= pass.entry.may_round != 0;
  for (Decision& note : call->graph.notes) context.log.Add(std::move(note));
  context.log.Add({.pass = Interned(pass.name),
                   .rule = "plugin.pass",
                   .subject = module->name(),
                   .because = std::move(what)});
  PipelineOptions plain;
  TOK_TRY(std::vector<PassRun> runs, tokamak::RunPasses(*module, kCleanUp, context, plain));
  return Ok();
}

Error CompileExtensions::WhyNotAdopted(const Module& before, Module& after,
                                       const PluginPass& pass) const {
  for (const auto& computation : after.computations()) computation->PutInOrder();
  if (Status verified = VerifyModule(after); !verified.ok()) {
    Error error = PluginError(ErrorCode::kPluginResult,
                              "its result does not verify: " + verified.error().message, before);
    error.where = verified.error().where;
    if (error.where.file.empty()) error.where.file = before.file;
    return error;
  }
  if (std::string why = WhyOtherInterface(before, after); !why.empty())
    return PluginError(ErrorCode::kPluginResult, "it changes the interface: " + why, before);
  if (!mode_.check) return {};
  std::string difference = DifferenceOfValues(before, after, pass.entry.may_round != 0);
  if (!difference.empty())
    return PluginError(ErrorCode::kPluginResult, "it changes values: " + difference, before);
  return {};
}

void CompileExtensions::LogUnusedPasses(const Module& module, DecisionLog& log) const {
  for (const PluginPass& pass : all_->passes) {
    if (!IsForTarget(pass.entry.targets) || done_.contains(&pass)) continue;
    std::string because =
        pass.is_abandoned->load() ? "it crashed or hung before, so it is not called again"
        : pass.entry.may_round != 0
            ? fmt::format("it follows the pass {}, which does not run, or the mode is strict",
                          InfoOf(pass.after).name)
            : fmt::format("it follows the pass {}, which does not run", InfoOf(pass.after).name);
    log.Add({.pass = Interned(pass.name),
             .rule = "plugin.pass",
             .verdict = Verdict::kRejected,
             .subject = module.name(),
             .because = std::move(because)});
  }
}

}  // namespace tokamak
