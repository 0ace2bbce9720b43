#include "fusion/plan.h"

#include <algorithm>
#include <chrono>
#include <ctime>
#include <optional>

#include "cost/rates.h"
#include "fusion/baseline_planner.h"
#include "fusion/candidate_plan.h"
#include "fusion/choose_schedules.h"
#include "fusion/enforce_constraints.h"
#include "fusion/fit_memory.h"
#include "fusion/greedy.h"
#include "fusion/horizontal.h"
#include "fusion/kernel_partition.h"
#include "fusion/region_costs.h"
#include "fusion/search.h"
#include "ir/compare.h"

namespace tokamak {
namespace {

// In the order of FusionMode.
constexpr std::string_view kFusionModes[] = {"none", "rules", "greedy", "search", "random"};
// The unfused plan is a starting plan only if it costs less than this fraction of the others. It
// certainly stores and launches more. Chosen: it must be cheaper by more than the cost model errs.
// kClearly: on CPUs with measured rates. kClearlyElsewhere: with default rates, and on GPUs, where
// horizontal fusion will still remove launches.
constexpr double kClearly = 0.97, kClearlyElsewhere = 0.8;
// Fraction: GPU plans with costs within 5 % are treated as equal. Chosen: the cost model errs by
// more, while the number of kernels is certain.
constexpr double kAboutOnGpu = 0.95;
// Divides the budget for the second starting plan. Chosen: it is behind already, so it seldom wins.
constexpr int64_t kBudgetOfSecond = 2;
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
    auto elapsed = std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
    return std::chrono::duration<double, std::milli>(elapsed).count();
  }
  double& ms_;
  double begin_;
};

// A starting plan: a candidate, the built plan that it was created from (if any), and its log.
struct Start {
  CandidatePlan candidate;
  std::optional<ComputationPlan> plan;
  DecisionLog log;
};

// State shared by all planners of one computation.
struct Setting {
  const Computation& computation;
  const Machine& machine;
  const FusionConstraints* constraints;
  int64_t memory_limit = 0;
  RegionCosts costs{computation, machine};
  KernelCache kernel_cache{computation, machine};
  PlanningStats stats = {};
};

Start StartUnfused(Setting& setting) {
  Start start{CandidatePlan(setting.computation, setting.machine, false, setting.costs.hasher()),
              std::nullopt,
              {}};
  EnforceConstraints(start.candidate, setting.costs, setting.constraints, start.log);
  return start;
}

Start StartGreedily(Setting& setting) {
  Stopwatch watch(setting.stats.greedy_ms);
  Start start{CandidatePlan(setting.computation, setting.machine, true, setting.costs.hasher()),
              std::nullopt,
              {}};
  EnforceConstraints(start.candidate, setting.costs, setting.constraints, start.log);
  ImproveGreedily(start.candidate, setting.costs, start.log, setting.stats);
  return start;
}

Start StartBaseline(Setting& setting) {
  Stopwatch watch(setting.stats.baseline_ms);
  DecisionLog log;
  ComputationPlan baseline = PlanBaseline(setting.kernel_cache, log);
  CandidatePlan candidate(baseline, setting.costs.hasher());
  for (size_t i = 0; i < baseline.kernels.size(); ++i)
    setting.costs.AddBuilt(candidate.GroupHash(static_cast<int>(i)), baseline.kernels[i].kind,
                           baseline.kernels[i].built);
  EnforceConstraints(candidate, setting.costs, setting.constraints, log);
  return {std::move(candidate), std::move(baseline), std::move(log)};
}

ComputationPlan Finish(Start start, Setting& setting, DecisionLog& log) {
  if (setting.memory_limit > 0)
    FitMemory(start.candidate, setting.costs, setting.memory_limit, start.log);
  for (const Decision& record : start.log.all()) log.Add(record);
  ComputationPlan plan(setting.computation);
  {
    Stopwatch watch(setting.stats.build_ms);
    if (!start.plan) start.plan.emplace(setting.computation);
    plan = BuildCandidate(start.candidate, setting.kernel_cache, std::move(*start.plan), log);
  }
  setting.stats.kernels_built_for_costs = static_cast<int64_t>(setting.costs.kernels_built());
  plan.stats = setting.stats;
  return plan;
}

// Large programs have more distinct kernels.
int64_t BudgetFor(const Computation& computation, Effort effort) {
  auto instrs = static_cast<int64_t>(computation.size());
  int64_t values = std::max(kMinBudget, instrs * kBudgetPerInstr);
  return effort == Effort::kMax ? kMaxEffortFactor * values : values;
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

void ImproveStart(StartingPlan& starting_plan, Setting& setting, int64_t budget) {
  ImproveBySearch(starting_plan.start.candidate, setting.costs, budget, starting_plan.start.log,
                  setting.stats);
  starting_plan.us = ModeledCost(starting_plan.start.candidate, setting.costs);
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
  ImproveStart(starting_plans[0], setting, budget);
  bool few = setting.computation.size() <= kFewInstrs;
  if (starting_plans[1].us < (few ? kGreedyRatioSmall : kGreedyRatio) * starting_plans[0].us)
    ImproveStart(starting_plans[1], setting, budget / kBudgetOfSecond);
  StartingPlan& best = IsBetter(starting_plans[1], starting_plans[0], setting) ? starting_plans[1]
                                                                               : starting_plans[0];
  setting.stats.chosen_us = best.us;
  return std::move(best.start);
}

ComputationPlan PlanBySearch(Setting& setting, int64_t budget, DecisionLog& log) {
  PlanningStats& stats = setting.stats;
  std::vector<StartingPlan> starting_plans;
  starting_plans.push_back({StartBaseline(setting)});
  starting_plans.push_back({StartGreedily(setting)});
  Stopwatch watch(stats.search_ms);
  stats.baseline_us = starting_plans[0].us =
      ModeledCost(starting_plans[0].start.candidate, setting.costs);
  stats.greedy_us = starting_plans[1].us =
      ModeledCost(starting_plans[1].start.candidate, setting.costs);
  StartingPlan unfused{StartUnfused(setting)};
  stats.unfused_us = unfused.us = ModeledCost(unfused.start.candidate, setting.costs);
  bool is_sure = !setting.machine.is_gpu() && !RatesOf(setting.machine).is_default;
  double clearly = is_sure ? kClearly : kClearlyElsewhere;
  if (unfused.us < clearly * std::min(stats.baseline_us, stats.greedy_us))
    starting_plans.push_back(std::move(unfused));
  Start best = BestOf(std::move(starting_plans), setting, budget);
  watch.Stop();
  return Finish(std::move(best), setting, log);
}

ComputationPlan PlanAtRandom(Setting& setting, DecisionLog& log) {
  Start start = StartBaseline(setting);
  MakeRandomMoves(start.candidate, setting.costs, kRandomMoves,
                  StructuralHash(setting.computation));
  return Finish(std::move(start), setting, log);
}

// Changes an existing plan so that the constraints hold.
ComputationPlan WithConstraints(ComputationPlan plan, Setting& setting, DecisionLog& log) {
  if (setting.constraints == nullptr || setting.constraints->empty()) return plan;
  CandidatePlan candidate(plan, setting.costs.hasher());
  EnforceConstraints(candidate, setting.costs, setting.constraints, log);
  return BuildCandidate(candidate, setting.kernel_cache, std::move(plan), log);
}

ComputationPlan PlanKernels(const Computation& computation, const PlanOptions& options,
                            Setting& setting, DecisionLog& log) {
  if (options.existing_partition != nullptr)
    if (auto found = options.existing_partition->find(&computation);
        found != options.existing_partition->end()) {
      ComputationPlan plan = BuildKernels(found->second, setting.kernel_cache, log);
      return options.constrain_existing ? WithConstraints(std::move(plan), setting, log) : plan;
    }
  switch (options.mode) {
    case FusionMode::kGreedy:
      return PlanGreedily(setting, log);
    case FusionMode::kRandom:
      return PlanAtRandom(setting, log);
    case FusionMode::kSearch:
      if (options.effort == Effort::kFast) return PlanGreedily(setting, log);
      return PlanBySearch(setting, BudgetFor(computation, options.effort), log);
    case FusionMode::kNone:
    case FusionMode::kXlaPasses:
      break;
  }
  ComputationPlan plan = options.mode == FusionMode::kNone
                             ? PlanUnfused(setting.kernel_cache, log)
                             : PlanBaseline(setting.kernel_cache, log);
  return WithConstraints(std::move(plan), setting, log);
}

}  // namespace

void AddKernel(ComputationPlan& plan, PlannedKernel kernel) {
  auto number = static_cast<int>(plan.kernels.size());
  for (const Instr* instr : kernel.region.instrs)
    if (plan.kernel_of[instr] < 0) plan.is_internal[instr] = true;
  for (const Instr* root : kernel.region.roots) {
    plan.kernel_of[root] = number;
    plan.is_internal[root] = false;
  }
  plan.kernels.push_back(std::move(kernel));
}

std::optional<FusionMode> FusionModeFromName(std::string_view name) {
  const auto* found = std::find(std::begin(kFusionModes), std::end(kFusionModes), name);
  if (found == std::end(kFusionModes)) return std::nullopt;
  return static_cast<FusionMode>(found - std::begin(kFusionModes));
}

std::string_view NameOf(FusionMode mode) {
  return kFusionModes[static_cast<size_t>(mode)];
}

std::optional<HorizontalMode> HorizontalModeFromName(std::string_view name) {
  if (name == "none") return HorizontalMode::kNone;
  if (name == "auto") return HorizontalMode::kAuto;
  if (name == "all") return HorizontalMode::kAll;
  return std::nullopt;
}

ComputationPlan PlanComputation(const Computation& computation, const Machine& machine,
                                const PlanOptions& options, DecisionLog& log) {
  Setting setting{computation, machine, options.constraints, options.memory_limit};
  ComputationPlan plan = PlanKernels(computation, options, setting, log);
  Stopwatch watch(plan.stats.schedule_ms);
  ChooseSchedules(plan, options.schedules, setting.kernel_cache, log);
  watch.Stop();
  if (options.existing_partition != nullptr && options.existing_partition->contains(&computation))
    return plan;
  bool evaluated = options.mode == FusionMode::kGreedy || options.mode == FusionMode::kSearch;
  if (options.horizontal == HorizontalMode::kAuto && evaluated)
    FuseHorizontally(plan, machine, log);
  if (options.horizontal == HorizontalMode::kAll) FuseAllHorizontally(plan);
  return plan;
}

}  // namespace tokamak
