#include "fusion/plan.h"

#include <algorithm>
#include <ctime>

#include "cost/rates.h"
#include "fusion/cut.h"
#include "fusion/draft.h"
#include "fusion/first_planner.h"
#include "fusion/fit_memory.h"
#include "fusion/given.h"
#include "fusion/greedy.h"
#include "fusion/hold_pins.h"
#include "fusion/packs.h"
#include "fusion/pricer.h"
#include "fusion/search.h"
#include "ir/compare.h"

namespace tokamak {
namespace {

// In the order of FusionMode.
constexpr std::string_view kFusionModes[] = {"none", "rules", "greedy", "search", "random"};
// Values of kernels that a search may build to price them, and so many for each instruction, if
// those are more; a thousand take some two milliseconds, with all that is done besides. With all
// effort, so many times as many.
constexpr int64_t kValues = 150'000, kValuesOfInstr = 20, kTimesAtMost = 5;
// A plan without fusion stores and launches more, which is certain; that it is cheaper all the same
// must be clear: more than prices err where nobody has measured, and where kernels are yet to be
// packed into launches.
constexpr double kClearly = 0.97, kClearlyElsewhere = 0.8;
// For the same reason, plans of a GPU that are so near to each other cost the same.
constexpr double kAboutOnGpu = 0.95;
// Another start that is so much dearer is left alone; of large computations, most are.
constexpr double kFarBehind = 1.5, kBehind = 1.1;
constexpr size_t kFewInstrs = 600;
// Moves that are made at random for each group, in tests.
constexpr int64_t kRandomMoves = 4;

// Adds the milliseconds that this thread works while it lives.
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

// A way to go on from: a draft, and the plan that it began as, if there is one.
struct Start {
  Draft draft;
  ComputationPlan plan;
  DecisionLog log;
};

// What all ways to plan a computation share.
struct Setting {
  const Computation& computation;
  const Machine& machine;
  const Pins* pins;
  int64_t memory_limit = 0;
  Pricer pricer{computation, machine};
  KernelMemo kernels{computation, machine};
  PlanningFacts facts = {};
};

Start StartUnfused(Setting& setting) {
  Start start{Draft(setting.computation, setting.machine, false, setting.pricer.hasher()),
              ComputationPlan(setting.computation),
              {}};
  HoldPins(start.draft, setting.pricer, setting.pins, start.log);
  return start;
}

Start StartGreedily(Setting& setting) {
  Stopwatch watch(setting.facts.greedy_ms);
  Start start{Draft(setting.computation, setting.machine, true, setting.pricer.hasher()),
              ComputationPlan(setting.computation),
              {}};
  HoldPins(start.draft, setting.pricer, setting.pins, start.log);
  ImproveGreedily(start.draft, setting.pricer, start.log, setting.facts);
  return start;
}

Start StartFirst(Setting& setting) {
  Stopwatch watch(setting.facts.first_ms);
  DecisionLog log;
  ComputationPlan first = PlanFirst(setting.kernels, true, log);
  Draft draft(first, setting.pricer.hasher());
  for (size_t i = 0; i < first.kernels.size(); ++i)
    setting.pricer.Learn(draft.HashOf(static_cast<int>(i)), first.kernels[i].kind,
                         first.kernels[i].built);
  HoldPins(draft, setting.pricer, setting.pins, log);
  return {std::move(draft), std::move(first), std::move(log)};
}

ComputationPlan Finish(Start start, Setting& setting, DecisionLog& log) {
  if (setting.memory_limit > 0)
    FitMemory(start.draft, setting.pricer, setting.memory_limit, start.log);
  for (const Decision& record : start.log.all()) log.Add(record);
  ComputationPlan plan(setting.computation);
  {
    Stopwatch watch(setting.facts.build_ms);
    plan = BuildDraft(start.draft, setting.kernels, std::move(start.plan), log);
  }
  setting.facts.kernels_built = static_cast<int64_t>(setting.pricer.kernels_built());
  plan.facts = setting.facts;
  return plan;
}

// Large programs have more kernels that are unlike each other.
int64_t BudgetFor(const Computation& computation, Effort effort) {
  auto instrs = static_cast<int64_t>(computation.size());
  int64_t values = std::max(kValues, instrs * kValuesOfInstr);
  return effort == Effort::kMax ? kTimesAtMost * values : values;
}

ComputationPlan PlanGreedily(Setting& setting, DecisionLog& log) {
  Start greedy = StartGreedily(setting);
  return Finish(std::move(greedy), setting, log);
}

// A start that is improved on, as long as the budget lasts.
struct Way {
  Start start;
  double us = 0;
};

void Go(Way& way, Setting& setting, int64_t budget) {
  Improve(way.start.draft, setting.pricer, budget, way.start.log, setting.facts);
  way.us = PriceOf(way.start.draft, setting.pricer);
}

int64_t KernelsOf(const Draft& draft) {
  int64_t count = 0;
  for (size_t i = 0; i < draft.size(); ++i) count += draft.IsThere(static_cast<int>(i));
  return count;
}

// One that fits into memory is better than one that does not. Of two that cost the same, fewer
// kernels store less, which is certain.
bool IsBetter(const Way& x, const Way& y, const Setting& setting) {
  if (int64_t limit = setting.memory_limit; limit > 0) {
    bool x_fits = FitsMemory(x.start.draft, limit);
    if (x_fits != FitsMemory(y.start.draft, limit)) return x_fits;
  }
  double about = setting.machine.is_gpu() ? kAboutOnGpu : 1;
  if (x.us < about * y.us || y.us < about * x.us) return x.us < y.us;
  int64_t of_x = KernelsOf(x.start.draft), of_y = KernelsOf(y.start.draft);
  return of_x != of_y ? of_x < of_y : x.us < y.us;
}

// The plans that others would make, improved on: the cheapest first, and the next as well, unless
// it is far behind.
Start BestOf(std::vector<Way> ways, Setting& setting, int64_t budget) {
  std::stable_sort(ways.begin(), ways.end(),
                   [](const Way& x, const Way& y) { return x.us < y.us; });
  Go(ways[0], setting, budget);
  bool few = setting.computation.size() <= kFewInstrs;
  if (ways[1].us < (few ? kFarBehind : kBehind) * ways[0].us) Go(ways[1], setting, budget / 2);
  Way& best = IsBetter(ways[1], ways[0], setting) ? ways[1] : ways[0];
  setting.facts.taken_us = best.us;
  return std::move(best.start);
}

ComputationPlan PlanBySearch(Setting& setting, int64_t budget, DecisionLog& log) {
  PlanningFacts& facts = setting.facts;
  std::vector<Way> ways;
  ways.reserve(3);  // they are large
  ways.push_back({StartFirst(setting)});
  ways.push_back({StartGreedily(setting)});
  Stopwatch watch(facts.search_ms);
  facts.first_us = ways[0].us = PriceOf(ways[0].start.draft, setting.pricer);
  facts.greedy_us = ways[1].us = PriceOf(ways[1].start.draft, setting.pricer);
  Way unfused{StartUnfused(setting)};
  facts.unfused_us = unfused.us = PriceOf(unfused.start.draft, setting.pricer);
  bool is_sure = !setting.machine.is_gpu() && !RatesOf(setting.machine).is_default;
  double clearly = is_sure ? kClearly : kClearlyElsewhere;
  if (unfused.us < clearly * std::min(facts.first_us, facts.greedy_us))
    ways.push_back(std::move(unfused));
  Start best = BestOf(std::move(ways), setting, budget);
  watch.Stop();
  return Finish(std::move(best), setting, log);
}

ComputationPlan PlanAtRandom(Setting& setting, DecisionLog& log) {
  Start start = StartFirst(setting);
  MakeRandomMoves(start.draft, setting.pricer, kRandomMoves, StructuralHash(setting.computation));
  return Finish(std::move(start), setting, log);
}

// A plan that somebody else made, changed so that pins hold.
ComputationPlan WithPins(ComputationPlan plan, Setting& setting, DecisionLog& log) {
  if (setting.pins == nullptr || setting.pins->empty()) return plan;
  Draft draft(plan, setting.pricer.hasher());
  HoldPins(draft, setting.pricer, setting.pins, log);
  return BuildDraft(draft, setting.kernels, std::move(plan), log);
}

ComputationPlan PlanKernels(const Computation& computation, const Machine& machine,
                            const PlanOptions& options, DecisionLog& log) {
  Setting setting{computation, machine, options.pins, options.memory_limit};
  if (options.cuts != nullptr)
    if (auto found = options.cuts->find(&computation); found != options.cuts->end())
      return BuildCut(found->second, setting.kernels, log);
  if (options.given != nullptr)
    return WithPins(BuildCut(options.given->CutOf(computation, machine), setting.kernels, log),
                    setting, log);
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

std::optional<PackMode> PackModeNamed(std::string_view name) {
  if (name == "none") return PackMode::kNone;
  if (name == "auto") return PackMode::kPriced;
  if (name == "all") return PackMode::kAll;
  return std::nullopt;
}

ComputationPlan PlanComputation(const Computation& computation, const Machine& machine,
                                const PlanOptions& options, DecisionLog& log) {
  ComputationPlan plan = PlanKernels(computation, machine, options, log);
  if (options.cuts != nullptr && options.cuts->contains(&computation)) return plan;
  bool priced = options.mode == FusionMode::kGreedy || options.mode == FusionMode::kSearch;
  if (options.packs == PackMode::kPriced && priced) FormPacks(plan, machine, log);
  if (options.packs == PackMode::kAll) PackAll(plan);
  return plan;
}

}  // namespace tokamak
