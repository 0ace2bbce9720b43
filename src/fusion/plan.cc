#include "fusion/plan.h"

#include "fusion/first_planner.h"

namespace tokamak {

ComputationPlan PlanComputation(const Computation& computation, const Machine& machine,
                                const PlanOptions& options, DecisionLog& log) {
  return PlanFirst(computation, machine, options.mode != FusionMode::kNone, log);
}

}  // namespace tokamak
