#include "fusion/plan.h"

#include <algorithm>
#include <chrono>
#include <ctime>
#include <memory>
#include <unordered_set>

#include "cost/rates.h"
#include "fusion/baseline_planner.h"
#include "fusion/candidate_plan.h"
#include "fusion/choose_schedules.h"
#include "fusion/enforce_constraints.h"
#include "fusion/extensions.h"
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
// The unfused plan is the first to be improved only if it costs less than this fraction of the
// others. It certainly stores and launches more. Chosen: it must be cheaper by more than the cost
// model errs. kClearly: on CPUs with measured rates. kClearlyElsewhere: with default rates, and on
// GPUs, where horizontal fusion will still remove launches.
constexpr double kClearly = 0.97, kClearlyElsewhere = 0.8;
// Fraction: GPU plans with costs within 5 % are treated as equal. Chosen: the cost model errs by
// more, while the number of kernels is certain.
constexpr double kAboutOnGpu = 0.95;
// Divides the budget for further starting plans. Chosen: they are behind already, so they seldom
// win.
constexpr int64_t kBudgetOfSecond = 2;
// The second starting plan is improved too if it costs less than this multiple of the cheapest:
// kGreedyRatioSmall up to kFewInstrs instructions, kGreedyRatio above. Chosen: bounds planning
// time; in large computations the second plan is mostly skipped.
constexpr double kGreedyRatioSmall = 1.5, kGreedyRatio = 1.1;
constexpr size_t kFewInstrs = 600;
// On a GPU, the best plan is compared with others by their costs with schedules and launch groups.
// The budget of this comparison, in kernel IR values. Chosen: some 10 ms (1000 values take 2 ms,
// plan.h), enough for two attention kernels and their schedules.
constexpr size_t kFinishBudget = 5000;
// Kernels that are built per kernel of the plan whose schedules are compared. Chosen: about as many
// as choose_schedules.h compares; it only weighs the budget, so a deviation costs a few ms.
constexpr size_t kCompared = 5;
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

// A starting plan, or one that the search has improved.
struct Start {
  CandidatePlan candidate;
  std::shared_ptr<const ComputationPlan> plan;  // that the candidate was created from; may be null
  DecisionLog log;
  double us = 0;  // modeled cost; only in a search
};

// State shared by all planners of one computation.
struct Setting {
  const Computation& computation;
  const Machine& machine;
  const PlanOptions& options;
  RegionCosts costs{computation, machine, options.extensions};
  KernelCache kernel_cache{computation, machine, options.extensions};
  ScheduleComparisons comparisons = {};
  PlanningStats stats = {};
};

Start StartUnfused(Setting& setting) {
  Start start{CandidatePlan(setting.computation, setting.machine, false, setting.costs.hasher()),
              nullptr,
              {}};
  EnforceConstraints(start.candidate, setting.costs, setting.options.constraints, start.log);
  return start;
}

Start StartGreedily(Setting& setting) {
  Stopwatch watch(setting.stats.greedy_ms);
  Start start{CandidatePlan(setting.computation, setting.machine, true, setting.costs.hasher()),
              nullptr,
              {}};
  EnforceConstraints(start.candidate, setting.costs, setting.options.constraints, start.log);
  ImproveGreedily(start.candidate, setting.costs, start.log, setting.stats);
  return start;
}

Start StartBaseline(Setting& setting) {
  Stopwatch watch(setting.stats.baseline_ms);
  DecisionLog log;
  ComputationPlan baseline = PlanBaseline(setting.kernel_cache, log);
  CandidatePlan candidate(baseline, setting.costs.hasher());
  for (size_t i = 0; i < baseline.kernels.size(); ++i)
    setting.costs.AddBuilt(baseline.kernels[i].region, candidate.GroupHash(static_cast<int>(i)),
                           baseline.kernels[i].kind, baseline.kernels[i].built);
  EnforceConstraints(candidate, setting.costs, setting.options.constraints, log);
  return {std::move(candidate), std::make_shared<const ComputationPlan>(std::move(baseline)),
          std::move(log)};
}

// Microseconds that each kernel of a launch but one saves on a GPU.
double LaunchUs(const Machine& machine) {
  return machine.is_gpu() ? RatesOf(machine).graph_gap_us : 0;
}

// A plan with schedules and launch groups.
struct FinishedPlan {
  ComputationPlan plan;
  DecisionLog log;
  double saved_us = 0;  // by schedules and launch groups, modeled
};

// Chooses schedules and launch groups.
FinishedPlan Complete(ComputationPlan plan, DecisionLog log, Setting& setting) {
  const PlanOptions& options = setting.options;
  FinishedPlan finished{std::move(plan), std::move(log)};
  Stopwatch watch(setting.stats.schedule_ms);
  finished.saved_us = ChooseSchedules(finished.plan, options.schedules, setting.kernel_cache,
                                      setting.comparisons, finished.log);
  watch.Stop();
  if (options.existing_partition != nullptr &&
      options.existing_partition->contains(&setting.computation))
    return finished;
  bool evaluated = options.mode == FusionMode::kGreedy || options.mode == FusionMode::kSearch;
  if (options.horizontal == HorizontalMode::kAuto && evaluated)
    FuseHorizontally(finished.plan, setting.machine, finished.log);
  if (options.horizontal == HorizontalMode::kAll) FuseAllHorizontally(finished.plan);
  for (const std::vector<int>& group : finished.plan.launch_groups)
    finished.saved_us += LaunchUs(setting.machine) * static_cast<double>(group.size() - 1);
  return finished;
}

FinishedPlan Finish(Start start, Setting& setting) {
  if (setting.options.memory_limit > 0)
    FitMemory(start.candidate, setting.costs, setting.options.memory_limit, start.log);
  ComputationPlan plan(setting.computation);
  {
    Stopwatch watch(setting.stats.build_ms);
    const ComputationPlan& base = start.plan != nullptr ? *start.plan : plan;
    plan = BuildCandidate(start.candidate, setting.kernel_cache, base, start.log);
  }
  setting.stats.kernels_built_for_costs = static_cast<int64_t>(setting.costs.kernels_built());
  return Complete(std::move(plan), std::move(start.log), setting);
}

// Large programs have more distinct kernels.
int64_t BudgetFor(const Computation& computation, Effort effort) {
  auto instrs = static_cast<int64_t>(computation.size());
  int64_t values = std::max(kMinBudget, instrs * kBudgetPerInstr);
  return effort == Effort::kMax ? kMaxEffortFactor * values : values;
}

FinishedPlan PlanGreedily(Setting& setting) {
  return Finish(StartGreedily(setting), setting);
}

void Improve(Start& start, LaunchCredit credit, int64_t budget, Setting& setting) {
  ImproveBySearch(start.candidate, setting.costs, {.build_effort_budget = budget, .credit = credit},
                  start.log, setting.stats);
  start.us = ModeledCost(start.candidate, setting.costs);
}

size_t KernelsOf(const CandidatePlan& candidate) {
  size_t count = 0;
  for (size_t i = 0; i < candidate.size(); ++i) count += candidate.IsLive(static_cast<int>(i));
  return count;
}

// The plans from which the result of a search is chosen.
class Contenders {
 public:
  Contenders(Setting& setting, const std::vector<Start>& starts)
      : setting_(setting), least_start_us_(std::ranges::min(starts, {}, &Start::us).us) {}

  // Adds a plan with its improvement. On a GPU, horizontal fusion does not always save the launches
  // that were credited: if the plan became costlier, one without credits is added too.
  void AddImproved(Start start, int64_t budget) {
    if (!setting_.machine.is_gpu()) {
      Improve(start, LaunchCredit::kNo, budget, setting_);
      return Add(std::move(start));
    }
    Start improved = start;
    Improve(improved, LaunchCredit::kYes, budget, setting_);
    if (improved.us > start.us) {
      Start again = start;
      Improve(again, LaunchCredit::kNo, budget, setting_);
      Add(std::move(again));
    }
    if (improved.candidate.size() > start.candidate.size()) starts_.push_back(std::move(start));
    Add(std::move(improved));
  }
  void Add(Start plan) {
    if (plans_.empty() || IsBetter(plan, plans_[best_])) best_ = plans_.size();
    plans_.push_back(std::move(plan));
  }
  double best_us() const { return plans_[best_].us; }

  // The best plan. On a GPU, another one may be cheaper with schedules and launch groups; it must
  // be clearly cheaper if the search has changed it, as in IsBetter.
  FinishedPlan FinishBest() {
    std::unordered_set<uint64_t> groups = GroupsOf(plans_[best_].candidate);
    double us = plans_[best_].us;
    bool compares = setting_.machine.is_gpu() && Fits(plans_[best_]);
    FinishedPlan best = Finish(std::move(plans_[best_]), setting_);
    double saved_us = best.saved_us;
    us -= saved_us;
    size_t budget = kFinishBudget;
    auto compare = [&](Start& other, double about) {
      if (!Fits(other)) return;
      FinishBound bound = BoundOf(other, groups);
      if (bound.others == 0 || bound.effort > budget || bound.us - saved_us >= about * us) return;
      budget -= bound.effort;
      double other_us = other.us;
      FinishedPlan finished = Finish(std::move(other), setting_);
      other_us -= finished.saved_us;
      if (other_us >= about * us) return;
      us = other_us;
      best = std::move(finished);
    };
    for (size_t i = 0; compares && i < starts_.size(); ++i) compare(starts_[i], 1);
    for (size_t i = 0; compares && i < plans_.size(); ++i)
      if (i != best_) compare(plans_[i], kAboutOnGpu);
    setting_.stats.chosen_us = us;
    return best;
  }

 private:
  bool Fits(const Start& plan) const {
    int64_t limit = setting_.options.memory_limit;
    return limit == 0 || FitsMemory(plan.candidate, limit);
  }

  // A plan that fits into memory beats one that does not. At about equal cost, the plan with fewer
  // kernels wins: it certainly stores less. But the best plan never costs more than a starting
  // plan.
  bool IsBetter(const Start& x, const Start& y) const {
    if (bool x_fits = Fits(x); x_fits != Fits(y)) return x_fits;
    double about = setting_.machine.is_gpu() ? kAboutOnGpu : 1;
    if (x.us < about * y.us || y.us < about * x.us || std::max(x.us, y.us) > least_start_us_)
      return x.us < y.us;
    size_t of_x = KernelsOf(x.candidate), of_y = KernelsOf(y.candidate);
    return of_x != of_y ? of_x < of_y : x.us < y.us;
  }

  static std::unordered_set<uint64_t> GroupsOf(const CandidatePlan& candidate) {
    std::unordered_set<uint64_t> groups;
    for (size_t i = 0; i < candidate.size(); ++i)
      if (auto group = static_cast<int>(i); candidate.IsLive(group))
        groups.insert(candidate.GroupHash(group));
    return groups;
  }

  // A lower bound of the cost of a plan with schedules and launch groups, and the effort of
  // computing the cost itself.
  struct FinishBound {
    double us = 0;                  // without the savings of the groups in common
    size_t others = 0, effort = 0;  // groups that are not in common, and the values to build them
  };
  // At most, each kernel but one saves its launch, and those with schedules to compare cost nothing
  // else.
  FinishBound BoundOf(const Start& plan, const std::unordered_set<uint64_t>& groups) {
    FinishBound bound{.us = plan.us + LaunchUs(setting_.machine)};
    for (size_t i = 0; i < plan.candidate.size(); ++i) {
      auto group = static_cast<int>(i);
      if (!plan.candidate.IsLive(group)) continue;
      bound.us -= LaunchUs(setting_.machine);
      if (groups.contains(plan.candidate.GroupHash(group))) continue;
      ++bound.others;
      const RegionCost& cost = setting_.costs.ModeledCostOf(plan.candidate.region(group),
                                                            plan.candidate.GroupHash(group));
      bool compares = IsPredictable(cost.kind, true);
      if (compares) bound.us -= cost.modeled.total() - cost.modeled.launch;
      bound.effort += cost.values * (compares ? kCompared : 1);
    }
    return bound;
  }

  Setting& setting_;
  double least_start_us_;
  std::vector<Start> plans_;   // improved, or too far behind
  std::vector<Start> starts_;  // that were improved
  size_t best_ = 0;
};

// Improves the first starting plan, the second unless it is far behind, and those that cost less
// than the best plan so far.
FinishedPlan PlanFrom(std::vector<Start> starts, Setting& setting, int64_t budget) {
  Stopwatch watch(setting.stats.search_ms);
  bool few = setting.computation.size() <= kFewInstrs;
  double ratio = few ? kGreedyRatioSmall : kGreedyRatio;
  Contenders contenders(setting, starts);
  for (size_t i = 0; i < starts.size(); ++i) {
    if (i == 0)
      contenders.AddImproved(std::move(starts[i]), budget);
    else if (starts[i].us < (i == 1 ? ratio : 1) * contenders.best_us())
      contenders.AddImproved(std::move(starts[i]), budget / kBudgetOfSecond);
    else
      contenders.Add(std::move(starts[i]));
  }
  watch.Stop();
  return contenders.FinishBest();
}

FinishedPlan PlanBySearch(Setting& setting, int64_t budget) {
  PlanningStats& stats = setting.stats;
  std::vector<Start> starts;
  starts.push_back(StartBaseline(setting));
  starts.push_back(StartGreedily(setting));
  Stopwatch watch(stats.search_ms);
  for (Start& start : starts) start.us = ModeledCost(start.candidate, setting.costs);
  stats.baseline_us = starts[0].us;
  stats.greedy_us = starts[1].us;
  std::ranges::stable_sort(starts, {}, &Start::us);
  double fused_us = starts[0].us;
  Start unfused = StartUnfused(setting);
  stats.unfused_us = unfused.us = ModeledCost(unfused.candidate, setting.costs, fused_us);
  watch.Stop();
  bool is_sure = !setting.machine.is_gpu() && !RatesOf(setting.machine).is_default;
  bool is_clear = unfused.us < (is_sure ? kClearly : kClearlyElsewhere) * fused_us;
  if (unfused.us < fused_us)
    starts.insert(is_clear ? starts.begin() : starts.end(), std::move(unfused));
  return PlanFrom(std::move(starts), setting, budget);
}

FinishedPlan PlanAtRandom(Setting& setting) {
  Start start = StartBaseline(setting);
  MakeRandomMoves(start.candidate, setting.costs, kRandomMoves,
                  StructuralHash(setting.computation));
  return Finish(std::move(start), setting);
}

// Plans with the opinions of fusion policies. There is one starting plan, so that the policies see
// every move that led to the result: the other ones contain fusions that they have not seen,
// and a plan that they like may cost more. Nullopt if no policy had an opinion.
std::optional<FinishedPlan> PlanByPolicy(Setting& setting, int64_t budget) {
  MovePolicy policy(*setting.options.extensions);
  Start start{CandidatePlan(setting.computation, setting.machine, false, setting.costs.hasher()),
              nullptr,
              {}};
  EnforceConstraints(start.candidate, setting.costs, setting.options.constraints, start.log);
  {
    Stopwatch watch(setting.stats.greedy_ms);
    ImproveGreedily(start.candidate, setting.costs, start.log, setting.stats, &policy);
  }
  if (budget > 0) {
    Stopwatch watch(setting.stats.search_ms);
    LaunchCredit credit = setting.machine.is_gpu() ? LaunchCredit::kYes : LaunchCredit::kNo;
    ImproveBySearch(start.candidate, setting.costs,
                    {.build_effort_budget = budget, .credit = credit, .policy = &policy}, start.log,
                    setting.stats);
    start.us = ModeledCost(start.candidate, setting.costs);
  }
  if (!policy.influenced()) return std::nullopt;
  double us = start.us;
  FinishedPlan finished = Finish(std::move(start), setting);
  setting.stats.chosen_us = budget > 0 ? us - finished.saved_us : 0;
  return finished;
}

// Changes an existing plan so that the constraints hold.
ComputationPlan WithConstraints(ComputationPlan plan, Setting& setting, DecisionLog& log) {
  if (setting.options.constraints == nullptr || setting.options.constraints->empty()) return plan;
  CandidatePlan candidate(plan, setting.costs.hasher());
  EnforceConstraints(candidate, setting.costs, setting.options.constraints, log);
  return BuildCandidate(candidate, setting.kernel_cache, plan, log);
}

FinishedPlan PlanKernels(Setting& setting) {
  const PlanOptions& options = setting.options;
  DecisionLog log;
  if (options.existing_partition != nullptr)
    if (auto found = options.existing_partition->find(&setting.computation);
        found != options.existing_partition->end()) {
      ComputationPlan plan = BuildKernels(found->second, setting.kernel_cache, log);
      if (options.constrain_existing) plan = WithConstraints(std::move(plan), setting, log);
      return Complete(std::move(plan), std::move(log), setting);
    }
  bool searches = options.mode == FusionMode::kSearch && options.effort != Effort::kFast;
  int64_t budget = searches ? BudgetFor(setting.computation, options.effort) : 0;
  bool has_moves = options.mode == FusionMode::kGreedy || options.mode == FusionMode::kSearch;
  if (has_moves && options.extensions != nullptr && options.extensions->HasFusionPolicy())
    if (std::optional<FinishedPlan> planned = PlanByPolicy(setting, budget))
      return std::move(*planned);
  switch (options.mode) {
    case FusionMode::kGreedy:
      return PlanGreedily(setting);
    case FusionMode::kRandom:
      return PlanAtRandom(setting);
    case FusionMode::kSearch:
      return searches ? PlanBySearch(setting, budget) : PlanGreedily(setting);
    case FusionMode::kNone:
    case FusionMode::kXlaPasses:
      break;
  }
  ComputationPlan plan = options.mode == FusionMode::kNone
                             ? PlanUnfused(setting.kernel_cache, log)
                             : PlanBaseline(setting.kernel_cache, log);
  plan = WithConstraints(std::move(plan), setting, log);
  return Complete(std::move(plan), std::move(log), setting);
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
  Setting setting{computation, machine, options};
  FinishedPlan finished = PlanKernels(setting);
  for (const Decision& decision : finished.log.all()) log.Add(decision);
  finished.plan.stats = setting.stats;
  return std::move(finished.plan);
}

}  // namespace tokamak
