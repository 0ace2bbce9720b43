#include "fusion/plan.h"

#include <algorithm>
#include <ctime>

#include "cost/rates.h"
#include "fusion/candidate_plan.h"
#include "fusion/cut.h"
#include "fusion/first_planner.h"
#include "fusion/fit_memory.h"
#include "fusion/greedy.h"
#include "fusion/hold_pins.h"
#include "fusion/horizontal.h"
#include "fusion/predetermined_fusions.h"
#include "fusion/region_costs.h"
#include "fusion/search.h"
#include "ir/compare.h"

namespace tokamak {
namespace {

// In the order of FusionMode.
constexpr std::string_view kFusionModes[] = {"none", "rules", "greedy", "search", "random"};
// Budget of the search in kernel IR values (RegionCosts::work_done): at least kValues, or
// kValuesOfInstr per instruction if that is more; kTimesAtMost times that with Effort::kMax. Chosen
// for about a second by default: 1000 values take some 2 ms, including all other work of the
// search. Planning times are in docs/results/planning.md.
constexpr int64_t kValues = 150'000, kValuesOfInstr = 20, kTimesAtMost = 5;
// The unfused plan is a starting plan only if it costs less than this fraction of the others. It
// certainly stores and launches more, so it must be clearly cheaper: by more than the cost model
// errs. kClearly: on CPUs with measured rates. kClearlyElsewhere: with default rates, and on GPUs,
// where horizontal fusion will still remove launches. Chosen.
constexpr double kClearly = 0.97, kClearlyElsewhere = 0.8;
// GPU plans with costs within 5 % are treated as equal, for the same reason. Chosen.
constexpr double kAboutOnGpu = 0.95;
// The second starting plan is improved too if it costs less than this multiple of the cheapest:
// kGreedyRatioSmall up to kFewInstrs instructions, kGreedyRatio above. Chosen: bounds planning
// time; in large computations the second plan is mostly skipped.
constexpr double kGreedyRatioSmall = 1.5, kGreedyRatio = 1.1;
constexpr size_t kFewInstrs = 600;
// Random moves per group, for tests.
constexpr int64_t kRandomMoves = 4;

// Adds the CPU milliseconds of this thread between construction and Stop().
class Stopwatch {
 public:
  explicit Stopwatch(double& ms) : ms_(ms), begin_(Now()) {}
  ~Stopwatch() { Stop(); }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

  void Stop() {
    if (begin_ >= 0) ms_ += Now() - begin_;
    begin_ = -1;
  }

 private:
  static double Now() {
    timespec now{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) * 1e-6;
  }
  double& ms_;
  double begin_;
};

// A starting plan: a candidate, the built plan that it was created from (if any), and its log.
struct Start {
  CandidatePlan candidate;
  ComputationPlan plan;
  DecisionLog log;
};

// State shared by all planners of one computation.
struct Setting {
  const Computation& computation;
  const Machine& machine;
  const Pins* pins;
  int64_t memory_limit = 0;
  RegionCosts costs{computation, machine};
  KernelMemo kernels{computation, machine};
  PlanningFacts facts = {};
};

Start StartUnfused(Setting& setting) {
  Start start{CandidatePlan(setting.computation, setting.machine, false, setting.costs.hasher()),
              ComputationPlan(setting.computation),
              {}};
  HoldPins(start.candidate, setting.costs, setting.pins, start.log);
  return start;
}

Start StartGreedily(Setting& setting) {
  Stopwatch watch(setting.facts.greedy_ms);
  Start start{CandidatePlan(setting.computation, setting.machine, true, setting.costs.hasher()),
              ComputationPlan(setting.computation),
              {}};
  HoldPins(start.candidate, setting.costs, setting.pins, start.log);
  ImproveGreedily(start.candidate, setting.costs, start.log, setting.facts);
  return start;
}

Start StartFirst(Setting& setting) {
  Stopwatch watch(setting.facts.first_ms);
  DecisionLog log;
  ComputationPlan first = PlanFirst(setting.kernels, true, log);
  CandidatePlan candidate(first, setting.costs.hasher());
  for (size_t i = 0; i < first.kernels.size(); ++i)
    setting.costs.Learn(candidate.HashOf(static_cast<int>(i)), first.kernels[i].kind,
                        first.kernels[i].built);
  HoldPins(candidate, setting.costs, setting.pins, log);
  return {std::move(candidate), std::move(first), std::move(log)};
}

ComputationPlan Finish(Start start, Setting& setting, DecisionLog& log) {
  if (setting.memory_limit > 0)
    FitMemory(start.candidate, setting.costs, setting.memory_limit, start.log);
  for (const Decision& record : start.log.all()) log.Add(record);
  ComputationPlan plan(setting.computation);
  {
    Stopwatch watch(setting.facts.build_ms);
    plan = BuildCandidate(start.candidate, setting.kernels, std::move(start.plan), log);
  }
  setting.facts.kernels_built = static_cast<int64_t>(setting.costs.kernels_built());
  plan.facts = setting.facts;
  return plan;
}

// Large programs have more distinct kernels.
int64_t BudgetFor(const Computation& computation, Effort effort) {
  auto instrs = static_cast<int64_t>(computation.size());
  int64_t values = std::max(kValues, instrs * kValuesOfInstr);
  return effort == Effort::kMax ? kTimesAtMost * values : values;
}

ComputationPlan PlanGreedily(Setting& setting, DecisionLog& log) {
  Start greedy = StartGreedily(setting);
  return Finish(std::move(greedy), setting, log);
}

// A starting plan with its cost, which the search improves within the budget.
struct StartingPlan {
  Start start;
  double us = 0;
};

void Go(StartingPlan& starting_plan, Setting& setting, int64_t budget) {
  Improve(starting_plan.start.candidate, setting.costs, budget, starting_plan.start.log,
          setting.facts);
  starting_plan.us = EstimateCost(starting_plan.start.candidate, setting.costs);
}

int64_t KernelsOf(const CandidatePlan& candidate) {
  int64_t count = 0;
  for (size_t i = 0; i < candidate.size(); ++i) count += candidate.IsLive(static_cast<int>(i));
  return count;
}

// A plan that fits into memory beats one that does not. At equal cost, the plan with fewer kernels
// wins: it certainly stores less.
bool IsBetter(const StartingPlan& x, const StartingPlan& y, const Setting& setting) {
  if (int64_t limit = setting.memory_limit; limit > 0) {
    bool x_fits = FitsMemory(x.start.candidate, limit);
    if (x_fits != FitsMemory(y.start.candidate, limit)) return x_fits;
  }
  double about = setting.machine.is_gpu() ? kAboutOnGpu : 1;
  if (x.us < about * y.us || y.us < about * x.us) return x.us < y.us;
  int64_t of_x = KernelsOf(x.start.candidate), of_y = KernelsOf(y.start.candidate);
  return of_x != of_y ? of_x < of_y : x.us < y.us;
}

// Improves the cheapest starting plan, and the second unless it is far behind. Returns the better.
Start BestOf(std::vector<StartingPlan> starting_plans, Setting& setting, int64_t budget) {
  std::stable_sort(starting_plans.begin(), starting_plans.end(),
                   [](const StartingPlan& x, const StartingPlan& y) { return x.us < y.us; });
  Go(starting_plans[0], setting, budget);
  bool few = setting.computation.size() <= kFewInstrs;
  if (starting_plans[1].us < (few ? kGreedyRatioSmall : kGreedyRatio) * starting_plans[0].us)
    Go(starting_plans[1], setting, budget / 2);
  StartingPlan& best = IsBetter(starting_plans[1], starting_plans[0], setting) ? starting_plans[1]
                                                                               : starting_plans[0];
  setting.facts.chosen_us = best.us;
  return std::move(best.start);
}

ComputationPlan PlanBySearch(Setting& setting, int64_t budget, DecisionLog& log) {
  PlanningFacts& facts = setting.facts;
  std::vector<StartingPlan> starting_plans;
  starting_plans.reserve(3);  // avoids moves of large objects
  starting_plans.push_back({StartFirst(setting)});
  starting_plans.push_back({StartGreedily(setting)});
  Stopwatch watch(facts.search_ms);
  facts.first_us = starting_plans[0].us =
      EstimateCost(starting_plans[0].start.candidate, setting.costs);
  facts.greedy_us = starting_plans[1].us =
      EstimateCost(starting_plans[1].start.candidate, setting.costs);
  StartingPlan unfused{StartUnfused(setting)};
  facts.unfused_us = unfused.us = EstimateCost(unfused.start.candidate, setting.costs);
  bool is_sure = !setting.machine.is_gpu() && !RatesOf(setting.machine).is_default;
  double clearly = is_sure ? kClearly : kClearlyElsewhere;
  if (unfused.us < clearly * std::min(facts.first_us, facts.greedy_us))
    starting_plans.push_back(std::move(unfused));
  Start best = BestOf(std::move(starting_plans), setting, budget);
  watch.Stop();
  return Finish(std::move(best), setting, log);
}

ComputationPlan PlanAtRandom(Setting& setting, DecisionLog& log) {
  Start start = StartFirst(setting);
  MakeRandomMoves(start.candidate, setting.costs, kRandomMoves,
                  StructuralHash(setting.computation));
  return Finish(std::move(start), setting, log);
}

// Changes an existing plan so that the constraints hold.
ComputationPlan WithPins(ComputationPlan plan, Setting& setting, DecisionLog& log) {
  if (setting.pins == nullptr || setting.pins->empty()) return plan;
  CandidatePlan candidate(plan, setting.costs.hasher());
  HoldPins(candidate, setting.costs, setting.pins, log);
  return BuildCandidate(candidate, setting.kernels, std::move(plan), log);
}

ComputationPlan PlanKernels(const Computation& computation, const Machine& machine,
                            const PlanOptions& options, DecisionLog& log) {
  Setting setting{computation, machine, options.pins, options.memory_limit};
  if (options.cuts != nullptr)
    if (auto found = options.cuts->find(&computation); found != options.cuts->end())
      return BuildCut(found->second, setting.kernels, log);
  if (options.predetermined != nullptr)
    return WithPins(
        BuildCut(options.predetermined->CutOf(computation, machine), setting.kernels, log), setting,
        log);
  switch (options.mode) {
    case FusionMode::kGreedy:
      return PlanGreedily(setting, log);
    case FusionMode::kRandom:
      return PlanAtRandom(setting, log);
    case FusionMode::kSearch:
      if (options.effort == Effort::kFast) return PlanGreedily(setting, log);
      return PlanBySearch(setting, BudgetFor(computation, options.effort), log);
    case FusionMode::kNone:
    case FusionMode::kRules:
      break;
  }
  return WithPins(PlanFirst(setting.kernels, options.mode != FusionMode::kNone, log), setting, log);
}

}  // namespace

std::optional<FusionMode> FusionModeNamed(std::string_view name) {
  const auto* found = std::find(std::begin(kFusionModes), std::end(kFusionModes), name);
  if (found == std::end(kFusionModes)) return std::nullopt;
  return static_cast<FusionMode>(found - std::begin(kFusionModes));
}

std::string_view NameOf(FusionMode mode) {
  return kFusionModes[static_cast<size_t>(mode)];
}

std::optional<HorizontalMode> HorizontalModeNamed(std::string_view name) {
  if (name == "none") return HorizontalMode::kNone;
  if (name == "auto") return HorizontalMode::kByCost;
  if (name == "all") return HorizontalMode::kAll;
  return std::nullopt;
}

ComputationPlan PlanComputation(const Computation& computation, const Machine& machine,
                                const PlanOptions& options, DecisionLog& log) {
  ComputationPlan plan = PlanKernels(computation, machine, options, log);
  if (options.cuts != nullptr && options.cuts->contains(&computation)) return plan;
  bool evaluated = options.mode == FusionMode::kGreedy || options.mode == FusionMode::kSearch;
  if (options.horizontal == HorizontalMode::kByCost && evaluated)
    FuseHorizontally(plan, machine, log);
  if (options.horizontal == HorizontalMode::kAll) FuseAllHorizontally(plan);
  return plan;
}

}  // namespace tokamak
