#include "fusion/plan.h"

#include "fusion/cut.h"
#include "fusion/draft.h"
#include "fusion/first_planner.h"
#include "fusion/given.h"
#include "fusion/pricer.h"
#include "fusion/search.h"

namespace tokamak {
namespace {

// Kernels that a search may build to price them; each takes some tenths of a millisecond.
constexpr int64_t kProbes = 600;
// A draft by estimates is worth pricing by kernels when it is not this much dearer than another.
constexpr double kDoubt = 1.1;

ComputationPlan PlanGreedily(const Computation& computation, const Machine& machine,
                             DecisionLog& log) {
  Pricer pricer(computation, machine);
  Draft draft(computation, machine);
  Improve(draft, pricer, PriceLevel::kEstimates, kProbes, log);
  return BuildDraft(draft, pricer, ComputationPlan(computation), log);
}

ComputationPlan PlanBySearch(const Computation& computation, const Machine& machine,
                             DecisionLog& log) {
  ComputationPlan first = PlanFirst(computation, machine, true, log);
  Pricer pricer(computation, machine);
  Draft draft(first);
  Improve(draft, pricer, PriceLevel::kKernels, kProbes, log);
  return BuildDraft(draft, pricer, std::move(first), log);
}

}  // namespace

ComputationPlan PlanComputation(const Computation& computation, const Machine& machine,
                                const PlanOptions& options, DecisionLog& log) {
  if (options.given != nullptr)
    return BuildCut(computation, options.given->CutOf(computation, machine), machine, log);
  switch (options.mode) {
    case FusionMode::kGreedy:
      return PlanGreedily(computation, machine, log);
    case FusionMode::kSearch:
      return PlanBySearch(computation, machine, log);
    case FusionMode::kNone:
    case FusionMode::kRules:
      break;
  }
  return PlanFirst(computation, machine, options.mode != FusionMode::kNone, log);
}

}  // namespace tokamak
