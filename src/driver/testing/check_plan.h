#pragma once

#include <memory>
#include <optional>

#include "driver/compile/compilation.h"
#include "driver/compile/compile_options.h"
#include "driver/compile/target.h"
#include "ir/ir.h"
#include "support/result.h"

// Evidence that a plan computes the program's values, and that fusion pays.

namespace tokamak {

// Runs the kernels that the module becomes for the target on random arguments: those of a CPU in
// the checked simulator, those of a GPU on the simulated device. Each kernel is compared with the
// interpreter (TOKAMAK_CHECK=kernels), and so are the results of the program (`run --expect`; with
// the tolerance of f16 if a kernel multiplies in TF32).
// Returns TK4006, TK6011 or an error of the run. A program that is interpreted as a whole is not
// run.
Status CheckPlanValues(const Module& module, const Target& target, const CompileOptions& options);

// Predicted microseconds of one run, as `explain` prints them.
struct PlanCost {
  double us = 0;
  // With one kernel per instruction. Empty if the program does not permit that, or if data decides
  // how often steps run.
  std::optional<double> unfused_us;
};
// `before`: the module that was compiled.
Result<PlanCost> CostOfPlan(std::shared_ptr<const Compilation> made, const Module& before);

}  // namespace tokamak
