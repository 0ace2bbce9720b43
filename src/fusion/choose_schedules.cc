#include "fusion/choose_schedules.h"

#include <algorithm>

#include <fmt/format.h>

#include "fusion/make_region.h"
#include "fusion/region_costs.h"

namespace tokamak {
namespace {

// Schedules per kernel that are compared, with the preferred one. Chosen: the generators list the
// most promising ones first. For kCheapest: their lists are not longer than about this.
constexpr size_t kComparedSchedules = 5, kCheapestSchedules = 32;
// A kernel is compared if its launch takes less than this fraction of its modeled cost. Chosen: of
// the rest, another schedule can save less than half, and comparing costs more than it saves.
constexpr double kMaxLaunchShare = 0.5;
// The budget of the comparison, in kernel IR values, which are built only for it: those of the
// kernels of the plan that have schedules, times kBudgetPerValue, but at least kMinScheduleBudget.
// 1000 values take some 2 ms (plan.h). Chosen: the comparison then takes no longer than building
// the kernels of the plan, or 4 ms.
constexpr size_t kMinScheduleBudget = 2000, kBudgetPerValue = 1;

// Kernels of equal regions.
struct EqualKernels {
  ScheduleComparison* comparison = nullptr;
  std::vector<size_t> kernels = {};  // indices into the plan, ascending
  double us() const { return comparison->preferred.total() * static_cast<double>(kernels.size()); }
};
using CheapestSchedule = ScheduleComparison::Cheapest;

class ScheduleChooser {
 public:
  ScheduleChooser(ComputationPlan& plan, const ScheduleOptions& options, KernelCache& kernel_cache,
                  ScheduleComparisons& comparisons, DecisionLog& log)
      : plan_(plan),
        options_(options),
        kernel_cache_(kernel_cache),
        comparisons_(comparisons),
        machine_(kernel_cache.machine()),
        log_(log),
        compares_all_(options.mode == ScheduleMode::kCheapest),
        margin_(compares_all_ ? 0 : kScheduleMargin) {}

  // Returns the microseconds that it saves.
  double Run() {
    for (PlannedKernel& planned : plan_.kernels)
      if (const Schedule* forced = ForcedScheduleOf(planned.region, options_))
        Rebuild(planned, *forced);
    if (options_.mode == ScheduleMode::kPreferred) return 0;
    for (const EqualKernels& equal : Collect()) {
      if (!compares_all_ && effort_ >= budget_) break;
      Compare(equal);
    }
    return saved_us_;
  }

 private:
  // The kernels that are compared, those with the greatest cost first. Sets the budget.
  std::vector<EqualKernels> Collect() {
    std::unordered_map<uint64_t, size_t> numbers;  // by the hash of their regions
    std::vector<EqualKernels> all;
    for (size_t k = 0; k < plan_.kernels.size(); ++k) {
      const PlannedKernel& planned = plan_.kernels[k];
      if (!planned.built.schedule || ForcedScheduleOf(planned.region, options_) != nullptr)
        continue;
      if (!compares_all_ &&
          (!IsPredictable(planned.kind, machine_.is_gpu()) || IsLargeBulk(planned)))
        continue;
      uint64_t hash = kernel_cache_.hasher().ExactHashOf(planned.region);
      auto [it, is_new] = numbers.try_emplace(hash, all.size());
      if (is_new) {
        auto [comparison, is_first] = comparisons_.try_emplace(hash);
        if (is_first) {
          Work work = WorkOf(planned.built.kernel, planned.built.grid, machine_);
          comparison->second.preferred = EstimateCost(work, machine_);
          comparison->second.least_us = LeastMicroseconds(work, machine_);
        }
        all.push_back({.comparison = &comparison->second});
        budget_ += kBudgetPerValue * planned.built.kernel.nodes.size();
      }
      all[it->second].kernels.push_back(k);
    }
    budget_ = std::max(budget_, kMinScheduleBudget);
    if (!compares_all_)
      std::erase_if(all, [&](const EqualKernels& equal) {
        const CostEstimate& preferred = equal.comparison->preferred;
        return preferred.launch > kMaxLaunchShare * preferred.total() ||
               equal.comparison->least_us >= (1 - margin_) * preferred.total();
      });
    std::stable_sort(all.begin(), all.end(),
                     [](const EqualKernels& x, const EqualKernels& y) { return x.us() > y.us(); });
    return all;
  }

  // Asynchronous multiplies are several times as fast as others, unless the dot is small.
  bool IsLargeBulk(const PlannedKernel& planned) const {
    // Microseconds. Chosen: ten times the pipeline of a tile of a small dot.
    constexpr double kSmallBulkUs = 20;
    return planned.built.schedule->staging == Staging::kBulk &&
           CostOf(planned.built).total() > kSmallBulkUs;
  }

  void Compare(const EqualKernels& equal) {
    const PlannedKernel& planned = plan_.kernels[equal.kernels[0]];
    if (!equal.comparison->cheapest) equal.comparison->cheapest = FindCheapest(planned);
    const CheapestSchedule& cheapest = *equal.comparison->cheapest;
    if (cheapest.compared == 0) return;
    double before = equal.comparison->preferred.total();
    Schedule preferred = *planned.built.schedule;
    bool is_better = cheapest.us < (1 - margin_) * before;
    for (size_t k : equal.kernels)
      is_better = is_better && Rebuild(plan_.kernels[k], cheapest.schedule);
    if (is_better) saved_us_ += (before - cheapest.us) * static_cast<double>(equal.kernels.size());
    Log(equal, preferred, cheapest, is_better);
  }

  // The cheapest schedule besides the preferred one.
  CheapestSchedule FindCheapest(const PlannedKernel& planned) {
    CheapestSchedule cheapest;
    std::vector<Schedule> all = Schedules(planned.region, planned.kind, machine_);
    // The generator has chosen among the tiles of asynchronous multiplies with the same rates.
    if (!compares_all_ && planned.built.schedule->staging == Staging::kBulk)
      std::erase_if(all, [](const Schedule& s) { return s.staging == Staging::kBulk; });
    size_t count = std::min(all.size(), compares_all_ ? kCheapestSchedules : kComparedSchedules);
    for (size_t i = 0; i < count; ++i) {
      if (all[i] == planned.built.schedule) continue;
      if (!HasSamePrecision(all[i], *planned.built.schedule)) continue;
      BuildOutcome outcome = BuildRegion(planned.region, all[i], machine_, "probe");
      effort_ += BuildEffortOf(outcome, planned.region);
      if (!outcome.built) continue;
      double us = CostOf(*outcome.built).total();
      if (++cheapest.compared > 1 && us >= cheapest.us) continue;
      cheapest.schedule = all[i];
      cheapest.us = us;
    }
    return cheapest;
  }

  // Returns whether the kernel has been built with the schedule. If not, it is unchanged.
  bool Rebuild(PlannedKernel& planned, const Schedule& schedule) {
    std::shared_ptr<const KernelBuildResult> result =
        kernel_cache_.BuildOrGet(planned.region, planned.kind, schedule);
    if (!result->outcome.built || result->outcome.built->schedule != schedule) return false;
    planned.built = RebindKernel(planned.region, *result, KernelNameOf(planned.region));
    return true;
  }

  void Log(const EqualKernels& equal, const Schedule& preferred, const CheapestSchedule& cheapest,
           bool is_better) {
    const PlannedKernel& planned = plan_.kernels[equal.kernels[0]];
    double before = equal.comparison->preferred.total();
    std::string because =
        fmt::format("{} costs {:.2f} times as much, not less than {:.2f}",
                    ToString(cheapest.schedule), cheapest.us / before, 1 - margin_);
    if (is_better)
      because = ToString(preferred) + " becomes " + ToString(cheapest.schedule);
    else if (cheapest.us >= before)
      because = fmt::format("the preferred one is the cheapest of {}", cheapest.compared + 1);
    log_.Add({.pass = "fuse",
              .rule = "schedule.cheaper",
              .verdict = is_better ? Verdict::kAccepted : Verdict::kRejected,
              .subject = LabelOf(*planned.region.roots[0]),
              .origins = planned.region.roots[0]->origins(),
              .before_us = before,
              .after_us = cheapest.us,
              .because = because});
  }

  CostEstimate CostOf(const BuiltKernel& built) const {
    return EstimateCost(WorkOf(built.kernel, built.grid, machine_), machine_);
  }

  ComputationPlan& plan_;
  const ScheduleOptions& options_;
  KernelCache& kernel_cache_;
  ScheduleComparisons& comparisons_;
  const Machine& machine_;
  DecisionLog& log_;
  bool compares_all_;  // without a budget
  double margin_;
  size_t budget_ = 0, effort_ = 0;  // in kernel IR values
  double saved_us_ = 0;
};

}  // namespace

bool IsPredictable(GeneratorKind kind, bool is_gpu) {
  return is_gpu && (kind == GeneratorKind::kContract || kind == GeneratorKind::kColumns);
}

bool HasSamePrecision(const Schedule& x, const Schedule& y) {
  return (x.split_k > 1) == (y.split_k > 1);
}

double ChooseSchedules(ComputationPlan& plan, const ScheduleOptions& options,
                       KernelCache& kernel_cache, ScheduleComparisons& comparisons,
                       DecisionLog& log) {
  return ScheduleChooser(plan, options, kernel_cache, comparisons, log).Run();
}

}  // namespace tokamak
