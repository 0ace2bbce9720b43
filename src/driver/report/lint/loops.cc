// lint.copy-in-loop: an iteration writes a whole carried array for a few new elements.
// lint.host-in-loop: an iteration waits for the host.

#include "analysis/loops.h"

#include <algorithm>
#include <unordered_map>

#include <fmt/format.h>

#include "driver/report/lint/lint_subject.h"
#include "driver/report/write.h"
#include "lower/lower.h"

namespace tokamak {
namespace {

// Bytes of a carried array below which a copy costs no more than a launch (chosen).
constexpr int64_t kMinCarriedBytes = 4096;
// Part of a carried array that an iteration may replace: more is not a small update (chosen).
constexpr double kLargeUpdate = 0.5;

// The innermost loop around each step.
class LoopsOfSteps {
 public:
  explicit LoopsOfSteps(const LoweredProgram& program) { Walk(program.steps, nullptr, program); }

  const Instr* Of(const RunStep* step) const {
    auto at = loop_of_.find(step);
    return at == loop_of_.end() ? nullptr : at->second;
  }

 private:
  void Walk(const std::vector<RunStep>& steps, const Instr* loop, const LoweredProgram& program) {
    for (const RunStep& step : steps) {
      loop_of_[&step] = loop;
      const Instr* inner = step.kind == StepKind::kWhile ? program.loops[step.target] : loop;
      for (const std::vector<RunStep>& block : step.blocks) Walk(block, inner, program);
    }
  }

  std::unordered_map<const RunStep*, const Instr*> loop_of_;
};

// The instruction that makes the next value of a carried array out of the present one by replacing
// or moving some of its elements; null if it is computed otherwise.
const Instr* UpdateOfCarry(const WhileLoop& loop, size_t i) {
  const Instr* next = loop.next(i);
  while (next->op() == Op::kReshape || next->op() == Op::kBitcast || next->op() == Op::kCopy)
    next = next->operand(0);
  auto reads_carry = [&](const Instr* value) {
    value = LintSource(value);
    return value == loop.in_body(i) ||
           (value->op() == Op::kSlice && LintSource(value->operand(0)) == loop.in_body(i));
  };
  if (next->op() == Op::kDynamicUpdateSlice || next->op() == Op::kScatter)
    return LintSource(next->operand(0)) == loop.in_body(i) ? next : nullptr;
  if (next->op() != Op::kConcatenate) return nullptr;
  int64_t kept = 0;
  for (const Instr* operand : next->operands())
    if (reads_carry(operand)) kept += LintBytes(*operand);
  bool moves = static_cast<double>(kept) > kLargeUpdate * static_cast<double>(LintBytes(*next));
  return moves ? next : nullptr;
}

class LoopLints {
 public:
  explicit LoopLints(LintSubject& subject)
      : subject_(subject), steps_(subject.report().steps), loops_(subject.report().program()) {}

  void Run() {
    for (const Instr* instr : subject_.report().program().loops) LookAtCarries(*instr);
    for (size_t i = 0; i < steps_.size(); ++i)
      if (steps_[i].generator == "host") LookAtHostStep(i);
  }

 private:
  void LookAtCarries(const Instr& instr) {
    std::optional<WhileLoop> loop = LoopOf(const_cast<Instr*>(&instr));
    if (!loop) return;
    for (size_t i = 0; i < loop->size(); ++i) {
      const Instr* update = UpdateOfCarry(*loop, i);
      if (update == nullptr || LintBytes(*update) < kMinCarriedBytes) continue;
      if (update->op() == Op::kConcatenate)
        LookAtConcatenation(*loop, *update);
      else
        LookAtUpdate(instr, *update);
    }
  }

  // The array moves by some elements: all of it is read and written.
  void LookAtConcatenation(const WhileLoop& loop, const Instr& concat) {
    const LintSubject::Traffic& traffic = subject_.TrafficOf(concat);
    if (!traffic.is_stored) return;
    // A loop in one launch is one step for all iterations.
    bool is_launch = steps_[traffic.steps[0]].generator == "persistent";
    auto trips = static_cast<int64_t>(is_launch ? TripCount(loop).value_or(1) : 1);
    subject_.Add({.rule = "lint.copy-in-loop",
                  .lines = LintLinesOf({&concat}),
                  .us = subject_.ClaimBytes(traffic.steps[0], 2 * trips * LintBytes(concat)),
                  .text = fmt::format("each iteration moves an array of {} to append to it: write "
                                      "into a fixed array at the index i % n with "
                                      "x.at[i % n].set(...)",
                                      BytesText(LintBytes(concat)))});
  }

  // Some elements are replaced, and the loop copies the others.
  void LookAtUpdate(const Instr& loop, const Instr& update) {
    int64_t bytes = LintBytes(update);
    double us = 0;
    bool copies = false;
    for (size_t i = 0; i < steps_.size(); ++i) {
      const RunStep* step = steps_[i].step;
      if (step == nullptr || step->kind != StepKind::kCopy || step->bytes != bytes ||
          loops_.Of(step) != &loop)
        continue;
      copies = true;
      us += subject_.Claim(i, steps_[i].us());
    }
    if (!copies) return;
    subject_.Add({.rule = "lint.copy-in-loop",
                  .lines = LintLinesOf({&update}),
                  .us = us,
                  .text = fmt::format("each iteration copies an array of {} because its former "
                                      "value is still used after some elements are replaced: read "
                                      "what you need of it before the update",
                                      BytesText(bytes))});
  }

  void LookAtHostStep(size_t i) {
    const StepReport& step = steps_[i];
    bool in_loop = step.step != nullptr && loops_.Of(step.step) != nullptr;
    std::string name = step.instrs.empty() ? step.name : step.instrs[0];
    bool is_host_op = step.why == "it runs on the host";
    std::vector<std::string> lines = LintLinesOf(step.made);
    if (in_loop && is_host_op) {
      subject_.Add(
          {.rule = "lint.host-in-loop",
           .lines = std::move(lines),
           .us = subject_.Claim(i, step.us()),
           .text = fmt::format("every iteration waits for the host, which runs {}: call it "
                               "after the loop with all values, or with jax.lax.cond "
                               "every n-th iteration",
                               name)});
    } else if (!is_host_op) {
      subject_.Add(
          {.rule = "lint.interpreted",
           .lines = std::move(lines),
           .us = subject_.Claim(i, step.us()),
           .text = fmt::format("no kernel computes {}: it runs on the host{}, which is slow "
                               "({})",
                               name, in_loop ? ", in each iteration" : "", step.why)});
    }
  }

  LintSubject& subject_;
  const std::vector<StepReport>& steps_;
  LoopsOfSteps loops_;
};

}  // namespace

void LintLoops(LintSubject& subject) {
  LoopLints(subject).Run();
}

}  // namespace tokamak
