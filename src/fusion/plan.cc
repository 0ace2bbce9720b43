#include "fusion/plan.h"

#include "fusion/cut.h"
#include "fusion/draft.h"
#include "fusion/first_planner.h"
#include "fusion/given.h"
#include "fusion/hold_pins.h"
#include "fusion/packs.h"
#include "fusion/pricer.h"
#include "fusion/search.h"
#include "ir/compare.h"

namespace tokamak {
namespace {

// Kernels that a search may build to price them; each takes some tenths of a millisecond.
constexpr int64_t kProbes = 600;
// Of larger computations, and where one kernel does it all, the greedy plan is not tried besides.
constexpr size_t kFewInstrs = 600;
// The first planner's rules come from measurements: another start must be cheaper than prices err.
constexpr double kClearly = 0.75;
// Moves that are made at random for each group, in tests.
constexpr int64_t kRandomMoves = 4;

// A way to go on from: a draft, and the plan that it began as, if there is one.
struct Start {
  Draft draft;
  ComputationPlan plan;
  DecisionLog log;
};

Start StartGreedily(const Computation& computation, const Machine& machine, Pricer& pricer,
                    const Pins* pins) {
  Start start{Draft(computation, machine), ComputationPlan(computation), {}};
  HoldPins(start.draft, pricer, pins, start.log);
  Improve(start.draft, pricer, PriceLevel::kEstimates, kProbes, start.log);
  return start;
}

Start StartFirst(const Computation& computation, const Machine& machine, Pricer& pricer,
                 const Pins* pins) {
  DecisionLog log;
  ComputationPlan first = PlanFirst(computation, machine, true, log);
  Draft draft(first);
  HoldPins(draft, pricer, pins, log);
  return {std::move(draft), std::move(first), std::move(log)};
}

ComputationPlan Finish(Start start, Pricer& pricer, DecisionLog& log) {
  for (const Decision& record : start.log.all()) log.Add(record);
  return BuildDraft(start.draft, pricer, std::move(start.plan), log);
}

ComputationPlan PlanBySearch(const Computation& computation, const Machine& machine,
                             const Pins* pins, DecisionLog& log) {
  Pricer pricer(computation, machine);
  Start best = StartFirst(computation, machine, pricer, pins);
  if (best.draft.size() > 1 && best.draft.order().size() <= kFewInstrs) {
    Start greedy = StartGreedily(computation, machine, pricer, pins);
    if (PriceOf(greedy.draft, pricer, PriceLevel::kKernels) <
        kClearly * PriceOf(best.draft, pricer, PriceLevel::kKernels))
      best = std::move(greedy);
  }
  Improve(best.draft, pricer, PriceLevel::kKernels, kProbes, best.log);
  return Finish(std::move(best), pricer, log);
}

ComputationPlan PlanAtRandom(const Computation& computation, const Machine& machine,
                             const Pins* pins, DecisionLog& log) {
  Pricer pricer(computation, machine);
  Start start = StartFirst(computation, machine, pricer, pins);
  MakeRandomMoves(start.draft, pricer, kRandomMoves, StructuralHash(computation));
  return Finish(std::move(start), pricer, log);
}

// A plan that somebody else made, changed so that pins hold.
ComputationPlan WithPins(ComputationPlan plan, const Machine& machine, const Pins* pins,
                         DecisionLog& log) {
  if (pins == nullptr || pins->empty()) return plan;
  Pricer pricer(*plan.computation, machine);
  Draft draft(plan);
  HoldPins(draft, pricer, pins, log);
  return BuildDraft(draft, pricer, std::move(plan), log);
}

ComputationPlan PlanKernels(const Computation& computation, const Machine& machine,
                            const PlanOptions& options, DecisionLog& log) {
  if (options.given != nullptr)
    return WithPins(BuildCut(computation, options.given->CutOf(computation, machine), machine, log),
                    machine, options.pins, log);
  switch (options.mode) {
    case FusionMode::kGreedy: {
      Pricer pricer(computation, machine);
      return Finish(StartGreedily(computation, machine, pricer, options.pins), pricer, log);
    }
    case FusionMode::kRandom:
      return PlanAtRandom(computation, machine, options.pins, log);
    case FusionMode::kSearch:
      return PlanBySearch(computation, machine, options.pins, log);
    case FusionMode::kNone:
    case FusionMode::kRules:
      break;
  }
  return WithPins(PlanFirst(computation, machine, options.mode != FusionMode::kNone, log), machine,
                  options.pins, log);
}

}  // namespace

std::optional<PackMode> PackModeNamed(std::string_view name) {
  if (name == "none") return PackMode::kNone;
  if (name == "auto") return PackMode::kPriced;
  if (name == "all") return PackMode::kAll;
  return std::nullopt;
}

ComputationPlan PlanComputation(const Computation& computation, const Machine& machine,
                                const PlanOptions& options, DecisionLog& log) {
  ComputationPlan plan = PlanKernels(computation, machine, options, log);
  bool priced = options.mode == FusionMode::kGreedy || options.mode == FusionMode::kSearch;
  if (options.packs == PackMode::kPriced && priced) FormPacks(plan, machine, log);
  if (options.packs == PackMode::kAll) PackAll(plan);
  return plan;
}

}  // namespace tokamak
