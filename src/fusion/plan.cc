#include "fusion/plan.h"

#include "fusion/first_planner.h"
#include "fusion/search.h"

namespace tokamak {
namespace {

// Kernels that a search may build to price them; each takes some tenths of a millisecond.
constexpr int64_t kProbes = 600;

}  // namespace

ComputationPlan PlanComputation(const Computation& computation, const Machine& machine,
                                const PlanOptions& options, DecisionLog& log) {
  ComputationPlan plan = PlanFirst(computation, machine, options.mode != FusionMode::kNone, log);
  if (options.mode != FusionMode::kSearch) return plan;
  return ImprovePlan(std::move(plan), machine, kProbes, log);
}

}  // namespace tokamak
