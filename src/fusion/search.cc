#include "fusion/search.h"

#include <algorithm>
#include <random>
#include <unordered_set>

#include "fusion/enforce_constraints.h"
#include "fusion/evaluated_move.h"
#include "fusion/kernel_partition.h"
#include "fusion/moves.h"

namespace tokamak {
namespace {

// Iterations at most. Chosen: a backstop, since the search ends when no group has changed.
constexpr int kSearchMaxIterations = 64;
// With more promising moves than this per iteration, each is applied as soon as it is known to be
// worthwhile. Chosen: keeps the planning time of large programs bounded.
constexpr size_t kManyMoves = 500;
// Microseconds; cost of a region without a kernel, which the interpreter runs: more than any
// kernel.
constexpr double kNoKernelUs = 1e9;

// Whether one of the regions reads a root of another.
bool AnyReadsAnother(const std::vector<const FusedRegion*>& regions) {
  std::unordered_set<const Instr*> stored;
  for (const FusedRegion* region : regions)
    stored.insert(region->roots.begin(), region->roots.end());
  return std::ranges::any_of(regions, [&](const FusedRegion* region) {
    return std::ranges::any_of(region->inputs,
                               [&](const Instr* input) { return stored.contains(input); });
  });
}

class Search {
 public:
  Search(CandidatePlan& candidate, RegionCosts& costs, int64_t build_effort_budget,
         DecisionLog& log)
      : candidate_(candidate),
        costs_(costs),
        end_(static_cast<int64_t>(costs.build_effort()) + build_effort_budget),
        log_(log),
        hasher_(candidate),
        rejected_moves_(candidate) {}

  void Run(PlanningStats& stats) {
    std::vector<int> dirty;
    for (size_t i = 0; i < candidate_.size(); ++i) dirty.push_back(static_cast<int>(i));
    double before = ModeledCost(candidate_, costs_);
    size_t built = costs_.kernels_built();
    for (int iteration = 0; iteration < kSearchMaxIterations && !dirty.empty() && HasBudget();
         ++iteration)
      dirty = SearchOnce(dirty);
    rejected_moves_.LogRejections(log_);
    log_.Add({.pass = "fuse",
              .rule = "fusion.search",
              .subject = candidate_.computation().name(),
              .before_us = before,
              .after_us = ModeledCost(candidate_, costs_),
              .because = std::to_string(looked_at_) + " moves, " +
                         std::to_string(costs_.kernels_built() - built) + " kernels built"});
    stats.moves_enumerated += static_cast<int64_t>(looked_at_);
  }

 private:
  bool HasBudget() const { return static_cast<int64_t>(costs_.build_effort()) < end_; }

  // Evaluates all moves of these groups and applies the worthwhile ones, the best first. Returns
  // the groups whose moves may have changed.
  std::vector<int> SearchOnce(const std::vector<int>& groups) {
    std::vector<EvaluatedMove> promising, found;
    for (int group : groups) {
      if (!candidate_.IsLive(group)) continue;
      for (Move& move : MovesOf(candidate_, group, costs_.machine())) {
        ++looked_at_;
        EvaluatedMove evaluated{std::move(move)};
        evaluated.hash = hasher_.HashOf(evaluated.move);
        if (!rejected_moves_.Has(evaluated.hash) && IsPromising(evaluated))
          promising.push_back(std::move(evaluated));
      }
    }
    auto better = [](const EvaluatedMove& x, const EvaluatedMove& y) {
      return x.gain_us() > y.gain_us();
    };
    std::stable_sort(promising.begin(), promising.end(), better);
    // With very many moves, each is applied as soon as it is known to be worthwhile: most of the
    // others touch the same groups and are then obsolete, so building their kernels would be
    // wasted.
    bool at_once = promising.size() > kManyMoves;
    std::vector<int> changed;
    for (EvaluatedMove& evaluated : promising) {
      if (!HasBudget() || rejected_moves_.Has(evaluated.hash)) continue;
      if (at_once && !candidate_.IsStillApplicable(evaluated.move.change)) continue;
      if (!Evaluate(evaluated)) continue;
      if (at_once) {
        Make(evaluated, changed);
      } else {
        found.push_back(std::move(evaluated));
      }
    }
    std::stable_sort(found.begin(), found.end(), better);
    for (const EvaluatedMove& evaluated : found) Make(evaluated, changed);
    return Neighbours(changed);
  }

  // Whether the move may be worthwhile by estimates, without building kernels.
  bool IsPromising(EvaluatedMove& evaluated) {
    const Change& change = evaluated.move.change;
    evaluated.before_us = evaluated.after_us = 0;
    for (int i : change.removed) evaluated.before_us += EstimateOf(i);
    std::vector<FusedRegion> regions = candidate_.RegionsAfter(change);
    if (std::string why = WhyConstraintBroken(candidate_, change, regions); !why.empty()) {
      rejected_moves_.NoteReason(evaluated, std::move(why));
      return false;
    }
    for (const FusedRegion& region : regions) {
      evaluated.after_us += costs_.Estimate(region, candidate_.RegionHash(region));
      if (evaluated.after_us > kMaxEstimateRatio * evaluated.before_us) break;
    }
    // Estimates do not know that dots of a chain overlap the element code between them.
    bool is_reliable = evaluated.move.rule != "fusion.chain";
    if (!is_reliable || evaluated.after_us <= kMaxEstimateRatio * evaluated.before_us) return true;
    rejected_moves_.RejectForGood(evaluated, "by estimate");
    return false;
  }

  // Estimates know little of what follows asynchronous multiplies in their kernel: few threads
  // compute it. The kernel of a group has been built.
  double EstimateOf(int group) {
    const FusedRegion& region = candidate_.region(group);
    double us = costs_.Estimate(region, candidate_.GroupHash(group));
    bool multiplies = costs_.machine().async_multiply &&
                      std::ranges::any_of(region.instrs, [](const Instr* instr) {
                        return instr->op() == Op::kDot;
                      });
    if (!multiplies) return us;
    return std::max(us, costs_.ModeledCostOf(region, candidate_.GroupHash(group)).modeled.total());
  }

  // Whether the move is legal and worthwhile by modeled costs.
  bool Evaluate(EvaluatedMove& evaluated) {
    const Change& change = evaluated.move.change;
    evaluated.before_us = evaluated.after_us = 0;
    for (int i : change.removed)
      evaluated.before_us +=
          costs_.ModeledCostOf(candidate_.region(i), candidate_.GroupHash(i)).modeled.total();
    std::vector<FusedRegion> regions = candidate_.RegionsAfter(change);
    double launch = 0;
    for (const FusedRegion& region : regions) {
      const RegionCost& after = costs_.ModeledCostOf(region);
      launch = after.modeled.launch;
      evaluated.after_us += after.modeled.total();
      if (!after.HasKernel()) {
        evaluated.before_us = evaluated.after_us = 0;
        rejected_moves_.RejectForGood(evaluated, after.why_not);
        return false;
      }
    }
    if (MakesIndependent(change, regions)) evaluated.after_us -= launch;
    if (!evaluated.IsWorthwhile()) rejected_moves_.RejectForGood(evaluated, "");
    return evaluated.IsWorthwhile();
  }

  // GPU only: whether the new kernels are independent although the old ones were not. They can then
  // share one launch (horizontal.h), which the caller credits.
  bool MakesIndependent(const Change& change, const std::vector<FusedRegion>& regions) const {
    if (!costs_.machine().is_gpu() || regions.size() < 2 || change.removed.size() < 2) return false;
    std::vector<const FusedRegion*> before, after;
    for (int i : change.removed) before.push_back(&candidate_.region(i));
    for (const FusedRegion& region : regions) after.push_back(&region);
    return AnyReadsAnother(before) && !AnyReadsAnother(after);
  }

  // Skips a move if one of its groups has changed: its evaluation is obsolete.
  void Make(const EvaluatedMove& evaluated, std::vector<int>& changed) {
    const Change& change = evaluated.move.change;
    if (!candidate_.IsStillApplicable(change)) return;
    std::vector<FusedRegion> regions = candidate_.RegionsAfter(change);
    if (candidate_.MakesCycle(change, regions)) return;
    for (size_t i = 0; i < change.added.size(); ++i)
      changed.push_back(static_cast<int>(candidate_.size() + i));
    candidate_.Apply(change, std::move(regions));
    log_.Add(DecisionOf(evaluated, Verdict::kAccepted));
  }

  std::vector<int> Neighbours(const std::vector<int>& changed) const {
    std::vector<int> dirty;
    std::unordered_set<int> seen;
    auto add = [&](int group) {
      if (candidate_.IsLive(group) && seen.insert(group).second) dirty.push_back(group);
    };
    for (int group : changed) {
      if (!candidate_.IsLive(group)) continue;
      add(group);
      for (const Instr* root : candidate_.group(group).roots)
        for (int consumer : candidate_.ConsumersOf(*root)) add(consumer);
    }
    return dirty;
  }

  CandidatePlan& candidate_;
  RegionCosts& costs_;
  int64_t end_;  // value of RegionCosts::build_effort() at which the search stops
  DecisionLog& log_;
  MoveHasher hasher_;
  RejectedMoves rejected_moves_;
  size_t looked_at_ = 0;
};

}  // namespace

double ModeledCost(const CandidatePlan& candidate, RegionCosts& costs) {
  double total = 0;
  for (size_t i = 0; i < candidate.size(); ++i) {
    auto group = static_cast<int>(i);
    if (!candidate.IsLive(group)) continue;
    const RegionCost& evaluated =
        costs.ModeledCostOf(candidate.region(group), candidate.GroupHash(group));
    total += evaluated.HasKernel() ? evaluated.modeled.total() : kNoKernelUs;
  }
  return total;
}

void ImproveBySearch(CandidatePlan& candidate, RegionCosts& costs, int64_t build_effort_budget,
                     DecisionLog& log, PlanningStats& stats) {
  Search(candidate, costs, build_effort_budget, log).Run(stats);
}

bool IsLegal(const Change& change, const std::vector<FusedRegion>& regions,
             CandidatePlan& candidate, RegionCosts& costs) {
  return WhyConstraintBroken(candidate, change, regions).empty() && costs.AllHaveKernels(regions) &&
         !candidate.MakesCycle(change, regions);
}

void MakeRandomMoves(CandidatePlan& candidate, RegionCosts& costs, int64_t moves_per_group,
                     uint64_t seed) {
  std::mt19937_64 random(seed);
  int64_t left = moves_per_group * static_cast<int64_t>(candidate.size());
  while (left-- > 0 && candidate.size() > 0) {
    int group = static_cast<int>(random() % candidate.size());
    if (!candidate.IsLive(group)) continue;
    std::vector<Move> moves = MovesOf(candidate, group, costs.machine());
    if (moves.empty()) continue;
    const Change& change = moves[random() % moves.size()].change;
    std::vector<FusedRegion> regions = candidate.RegionsAfter(change);
    if (IsLegal(change, regions, candidate, costs)) candidate.Apply(change, std::move(regions));
  }
}

ComputationPlan BuildCandidate(const CandidatePlan& candidate, KernelCache& kernel_cache,
                               ComputationPlan base_plan, DecisionLog& log) {
  KernelPartition rest;
  std::vector<PlannedKernel> kept;
  for (size_t i = 0; i < candidate.size(); ++i) {
    const FusedRegion& region = candidate.region(static_cast<int>(i));
    if (region.roots.empty()) continue;
    if (i < base_plan.kernels.size()) {
      kept.push_back(std::move(base_plan.kernels[i]));
    } else {
      rest.regions.push_back({region.instrs, region.roots});
    }
  }
  ComputationPlan plan = BuildKernels(rest, kernel_cache, log);
  for (const Instr* instr : candidate.order())
    if (plan.host_step_reason[instr].empty())
      plan.host_step_reason[instr] = base_plan.host_step_reason[instr];
  for (PlannedKernel& planned : kept) AddKernel(plan, std::move(planned));
  return plan;
}

}  // namespace tokamak
