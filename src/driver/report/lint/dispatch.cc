// lint.dispatch-bound: a call computes for less time than it takes to dispatch.

#include <algorithm>

#include <fmt/format.h>

#include "cost/rates.h"
#include "driver/report/lint/lint_subject.h"

namespace tokamak {
namespace {

// Overhead of calling a compiled function from Python, in microseconds: per call, and per argument
// and result (docs/results/dispatch.md).
constexpr double kDispatchUs = 4.5, kDispatchUsOfArray = 0.7;

}  // namespace

void LintDispatch(LintSubject& subject) {
  const CompileReport& report = subject.report();
  bool loops = std::any_of(report.steps.begin(), report.steps.end(),
                           [](const StepReport& step) { return step.calls != 1; });
  double launch = report.machine().is_gpu() ? RatesOf(report.machine()).stream_gap_us : 0;
  const Computation& entry = *subject.compiled().entry();
  size_t arrays = entry.parameters().size() + LeavesOf(entry.root()->shape()).size();
  double dispatch = kDispatchUs + kDispatchUsOfArray * static_cast<double>(arrays) + launch;
  if (loops || report.totals.host > 0 || report.totals.us >= dispatch) return;
  subject.set_call_us(dispatch);
  subject.Add({.rule = "lint.dispatch-bound",
               .us = dispatch - report.totals.us,
               .text = fmt::format("a call computes for {:.3g} us and takes about {:.3g} us to "
                                   "dispatch: move the loop around it into the program with "
                                   "jax.lax.scan, or batch calls with jax.vmap",
                                   report.totals.us, dispatch)});
}

}  // namespace tokamak
