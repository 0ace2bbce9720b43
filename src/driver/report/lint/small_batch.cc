// lint.small-batch: the kernels of a program leave most of a GPU idle.

#include <algorithm>

#include <fmt/format.h>

#include "cost/rates.h"
#include "driver/report/lint/lint_subject.h"

namespace tokamak {
namespace {

// Kernels and microseconds of a program below which it is dispatch that costs (lint.dispatch-bound;
// chosen).
constexpr int64_t kMinSmallKernels = 4;
// A kernel with fewer blocks than this part of the multiprocessors is small (chosen).
constexpr double kFewBlocks = 0.25;
// Part of a call that small kernels take, from which it is a finding (chosen).
constexpr double kMinSmallPart = 0.6;

// Blocks of a launch; 0 for any other step.
int64_t BlocksOf(const StepReport& step) {
  if (step.step == nullptr || step.step->kind != StepKind::kLaunch) return 0;
  return step.step->grid;
}

}  // namespace

void LintSmallBatches(LintSubject& subject) {
  const CompileReport& report = subject.report();
  if (!report.machine().is_gpu()) return;
  auto processors = static_cast<double>(RatesOf(report.machine()).cores);
  double few = kFewBlocks * processors, small_us = 0;
  int64_t small = 0, kernels = 0;
  for (const StepReport& step : report.steps) {
    int64_t blocks = BlocksOf(step);
    if (blocks == 0) continue;
    kernels += step.runs();
    if (static_cast<double>(blocks) >= few) continue;
    small += step.runs();
    small_us += step.us();
  }
  if (small < kMinSmallKernels || small_us < kMinSmallPart * report.totals.us) return;
  double us = 0;
  for (size_t i = 0; i < report.steps.size(); ++i) {
    int64_t blocks = BlocksOf(report.steps[i]);
    if (blocks == 0 || static_cast<double>(blocks) >= few) continue;
    us += subject.Claim(i, subject.unclaimed(i) * (1 - static_cast<double>(blocks) / processors));
  }
  subject.Add({.rule = "lint.small-batch",
               .us = us,
               .text = fmt::format("{} of {} launches have fewer than {:.0f} blocks for {:.0f} "
                                   "multiprocessors: a larger batch takes hardly longer; "
                                   "jax.vmap over independent inputs, or larger arrays",
                                   small, kernels, few, processors)});
}

}  // namespace tokamak
