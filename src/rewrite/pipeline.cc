// Runs a list of passes on a module. Adjacent steps with the same group number repeat until none of
// them changes anything (a fixed point), at most limits.iterations times; then the group is
// recorded as unsettled, with the rules that were still firing. With verify_each, that is an error.
//
//   inline | {simplify, cse, dce} repeated | ...       each run: time, size before and after
//
// A pass reports Changed and records each accepted rewrite. The two must agree, which verify_each
// checks together with the module verifier, so that a broken pass is named and not its successor.
// Removed instructions are dropped when they outnumber the live ones.

#include "rewrite/pipeline.h"

#include <algorithm>
#include <chrono>

#include <fmt/format.h>

#include "ir/infer.h"

namespace tokamak {
namespace {

using Clock = std::chrono::steady_clock;

double MillisSince(Clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

// The distinct rules behind the records from `begin` on, most frequent first.
std::string RulesSince(const DecisionLog& log, size_t begin) {
  std::vector<std::pair<std::string_view, size_t>> counts;
  for (size_t i = begin; i < log.all().size(); ++i) {
    const Decision& decision = log.all()[i];
    if (decision.verdict != Verdict::kAccepted) continue;
    auto it = std::find_if(counts.begin(), counts.end(),
                           [&](const auto& entry) { return entry.first == decision.rule; });
    if (it == counts.end()) it = counts.emplace(counts.end(), decision.rule, 0);
    ++it->second;
  }
  std::stable_sort(counts.begin(), counts.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  std::string text;
  for (size_t i = 0; i < std::min<size_t>(counts.size(), 6); ++i)
    text += fmt::format("{}{} ({}x)", i == 0 ? "" : ", ", counts[i].first, counts[i].second);
  return text.empty() ? "no rule" : text;
}

class PipelineRunner {
 public:
  PipelineRunner(Module& module, std::span<const PassFn> functions, PassContext& context,
                 const PipelineOptions& options)
      : module_(module), functions_(functions), context_(context), options_(options) {}

  Result<std::vector<PassRun>> Run(std::span<const Step> steps) {
    for (const Step& step : steps) TOK_RETURN_IF_ERROR(CheckRow(InfoOf(step.pass), step.pass));
    for (size_t begin = 0; begin < steps.size() && !stopped_;) {
      size_t end = begin + 1;
      uint8_t group = steps[begin].group;
      while (group != 0 && end < steps.size() && steps[end].group == group) ++end;
      TOK_RETURN_IF_ERROR(RunGroup(steps.subspan(begin, end - begin), group != 0));
      begin = end;
    }
    for (const auto& computation : module_.computations()) computation->PutInOrder();
    return std::move(runs_);
  }

 private:
  Status CheckRow(const PassInfo& info, Pass pass) const {
    if (!IsFor(pass, context_.target.kind))
      return MakeError(ErrorCode::kUnsoundPipeline,
                       fmt::format("passes: {} needs a target ({})", info.name, PredicateOf(info)));
    return Ok();
  }

  bool Runs(Pass pass) const {
    uint8_t flags = InfoOf(pass).flags;
    if ((flags & kNotStrict) != 0 && context_.options.strict) return false;
    if ((flags & kPlanned) != 0 && !context_.target.is_planned) return false;
    if ((flags & kAddsArguments) != 0 && context_.options.added == nullptr) return false;
    return std::ranges::count(options_.skip, pass) == 0;
  }

  Status RunGroup(std::span<const Step> steps, bool repeat) {
    for (int64_t iteration = 0;; ++iteration) {
      size_t records = context_.log.all().size();
      Changed changed = Changed::kNo;
      for (const Step& step : steps) {
        if (!Runs(step.pass)) continue;
        TOK_TRY(Changed own, RunOne(step.pass, iteration));
        changed |= own;
        if (stopped_) return Ok();
      }
      if (!repeat || changed == Changed::kNo) return Ok();
      if (iteration + 1 >= context_.limits.iterations) return Unsettled(steps, records);
    }
  }

  Status Unsettled(std::span<const Step> steps, size_t records) {
    std::string because =
        fmt::format("{} still changes after {} iterations: {}", ToString(steps),
                    context_.limits.iterations, RulesSince(context_.log, records));
    const Computation* where = module_.entry();
    if (where == nullptr && !module_.computations().empty())
      where = module_.computations()[0].get();
    if (where != nullptr)
      context_.Rejected("pipeline.does-not-settle", *where->root(), nullptr, because);
    if (!options_.verify_each) return Ok();
    return MakeError(ErrorCode::kDoesNotSettle, "passes: " + because, {.file = module_.file});
  }

  Result<Changed> RunOne(Pass pass, int64_t iteration) {
    PassRun run{.pass = pass, .iteration = iteration, .instrs_before = module_.CountInstrs()};
    size_t accepted = context_.log.accepted();
    context_.pass = InfoOf(pass).name;
    Clock::time_point begin = Clock::now();
    TOK_TRY(run.changed, functions_[static_cast<size_t>(pass)](module_, context_));
    // Drops removed instructions, so that later passes need not skip them. Linear in all
    // instructions ever created.
    for (const auto& computation : module_.computations())
      if (computation->removed_count() > computation->size()) computation->PutInOrder();
    run.ms = MillisSince(begin);
    run.changes = context_.log.accepted() - accepted;
    run.instrs_after = module_.CountInstrs();
    if (options_.verify_each) {
      begin = Clock::now();
      TOK_RETURN_IF_ERROR(Verify(run));
      run.verify_ms = MillisSince(begin);
    }
    if (options_.listener != nullptr) {
      for (const auto& computation : module_.computations()) computation->PutInOrder();
      options_.listener->AfterPass(module_, run);
    }
    runs_.push_back(run);
    stopped_ = options_.stop_after == pass;
    return run.changed;
  }

  Status Verify(const PassRun& run) {
    std::string_view name = InfoOf(run.pass).name;
    if (run.changed == Changed::kNo && run.changes > 0)
      return MakeError(
          ErrorCode::kPassBrokeModule,
          fmt::format("pass {}: it recorded {} changes but reported none", name, run.changes));
    if (run.changed == Changed::kYes && run.changes == 0)
      return MakeError(ErrorCode::kPassBrokeModule,
                       fmt::format("pass {}: it changed the program without a record", name));
    Status verified = VerifyModule(module_);
    if (verified.ok()) return Ok();
    Error error = MakeError(
        ErrorCode::kPassBrokeModule,
        fmt::format("pass {}: its result does not verify: {}", name, verified.error().message),
        verified.error().where);
    error.notes = verified.error().notes;
    return error;
  }

  Module& module_;
  std::span<const PassFn> functions_;
  PassContext& context_;
  const PipelineOptions& options_;
  std::vector<PassRun> runs_;
  bool stopped_ = false;
};

}  // namespace

Result<std::vector<PassRun>> RunPipeline(Module& module, std::span<const Step> steps,
                                         std::span<const PassFn> functions, PassContext& context,
                                         const PipelineOptions& options) {
  TOK_CHECK(functions.size() == kPasses.size(), "one function for each row of passes.def");
  return PipelineRunner(module, functions, context, options).Run(steps);
}

std::string PredicateOf(const PassInfo& info) {
  std::string text = info.targets == kNoTarget   ? "any"
                     : info.targets == kCpuOrGpu ? "cpu, gpu"
                     : info.targets == kCpu      ? "cpu"
                                                 : "gpu";
  if ((info.flags & kPlanned) != 0) text += "; fusion greedy or search";
  if ((info.flags & kNotStrict) != 0) text += "; not strict";
  if ((info.flags & kMayRound) != 0) text += "; may round";
  if ((info.flags & kAddsArguments) != 0) text += "; adds arguments";
  return text;
}

std::string RenderRuns(std::span<const PassRun> runs) {
  std::string text = fmt::format("{:<28} {:>5} {:>10} {:>10} {:>9} {:>10}\n", "pass", "iteration",
                                 "instrs", "after", "changes", "ms");
  double total = 0;
  size_t changes = 0;
  for (const PassRun& run : runs) {
    total += run.ms;
    changes += run.changes;
    std::string change =
        run.changed == Changed::kYes ? fmt::format("{}", run.changes) : std::string("-");
    text += fmt::format("{:<28} {:>5} {:>10} {:>10} {:>9} {:>10.3f}\n", InfoOf(run.pass).name,
                        run.iteration + 1, run.instrs_before, run.instrs_after, change, run.ms);
  }
  if (!runs.empty())
    text += fmt::format("{:<28} {:>5} {:>10} {:>10} {:>9} {:>10.3f}\n", "total", "",
                        runs.front().instrs_before, runs.back().instrs_after, changes, total);
  return text;
}

}  // namespace tokamak
