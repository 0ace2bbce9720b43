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
  Search(CandidatePlan& candidate, RegionCosts& costs, const SearchOptions& options,
         DecisionLog& log)
      : candidate_(candidate),
        costs_(costs),
        end_(static_cast<int64_t>(costs.build_effort()) + options.build_effort_budget),
        credit_(options.credit),
        log_(log),
        policy_(options.policy),
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
    std::vector<Promising> promising;
    std::vector<EvaluatedMove> found;
    for (int group : groups) {
      if (!candidate_.IsLive(group)) continue;
      for (Move& move : MovesOf(candidate_, group, costs_.chain_slices())) {
        ++looked_at_;
        Promising tried{{std::move(move)}};
        tried.evaluated.hash = hasher_.HashOf(tried.evaluated.move);
        if (policy_ != nullptr)
          tried.evaluated.hash = MovePolicy::HashOf(tried.evaluated.hash, tried.evaluated.move);
        if (!rejected_moves_.Has(tried.evaluated.hash) && IsPromising(tried))
          promising.push_back(std::move(tried));
      }
    }
    std::ranges::stable_sort(promising, std::ranges::greater(),
                             [](const Promising& move) { return move.evaluated.gain_us(); });
    // With very many moves, each is applied as soon as it is known to be worthwhile: most of the
    // others touch the same groups and are then obsolete, so building their kernels would be
    // wasted.
    bool at_once = promising.size() > kManyMoves;
    std::vector<int> changed;
    for (Promising& move : promising) {
      EvaluatedMove& evaluated = move.evaluated;
      if (!HasBudget() || rejected_moves_.Has(evaluated.hash)) continue;
      if (at_once && !candidate_.IsStillApplicable(evaluated.move.change)) {
        EnumerateAgain(evaluated, changed);
        continue;
      }
      if (!Evaluate(move)) continue;
      if (at_once) {
        Make(evaluated, changed);
      } else {
        found.push_back(std::move(evaluated));
      }
    }
    std::ranges::stable_sort(found, std::ranges::greater(), &EvaluatedMove::gain_us);
    for (const EvaluatedMove& evaluated : found) Make(evaluated, changed);
    return Neighbours(changed);
  }

  // A move that may be worthwhile by estimates.
  struct Promising {
    EvaluatedMove evaluated;
    size_t candidate_size = 0;  // CandidatePlan::size() when the following were computed
    std::vector<FusedRegion> regions = {};
    std::vector<double> estimates_us = {};  // of the regions
  };

  // Whether the move may be worthwhile by estimates, without building kernels.
  bool IsPromising(Promising& tried) {
    EvaluatedMove& evaluated = tried.evaluated;
    const Change& change = evaluated.move.change;
    evaluated.before_us = evaluated.after_us = 0;
    for (int i : change.removed) evaluated.before_us += EstimateOf(i);
    tried.candidate_size = candidate_.size();
    tried.regions = candidate_.RegionsAfter(change);
    if (std::string why = WhyConstraintBroken(candidate_, change, tried.regions); !why.empty()) {
      rejected_moves_.NoteReason(evaluated, std::move(why));
      return false;
    }
    // Estimates do not know that dots of a chain overlap the element code between them.
    bool is_reliable = evaluated.move.rule != "fusion.chain";
    for (const FusedRegion& region : tried.regions) {
      evaluated.after_us += tried.estimates_us.emplace_back(costs_.Estimate(region));
      if (policy_ == nullptr && is_reliable && IsTooCostly(evaluated)) {
        rejected_moves_.RejectForGood(evaluated, "by estimate");
        return false;
      }
    }
    return policy_ == nullptr || IsPromisingToPolicy(tried, is_reliable);
  }

  static bool IsTooCostly(const EvaluatedMove& evaluated) {
    return evaluated.after_us > kMaxEstimateRatio * evaluated.before_us * evaluated.weight;
  }

  // The rest of IsPromising with a policy, which is asked about every move.
  bool IsPromisingToPolicy(Promising& tried, bool is_reliable) {
    EvaluatedMove& evaluated = tried.evaluated;
    if (!policy_->Allows(evaluated, candidate_, tried.regions, costs_, log_)) {
      rejected_moves_.RejectForGood(evaluated, "by the policy " + evaluated.policy);
      return false;
    }
    if (evaluated.is_accepted || !is_reliable || !IsTooCostly(evaluated)) return true;
    policy_->Impossible(evaluated, "by estimate", log_);
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

  // Whether the move is legal and worthwhile by modeled costs. Builds no more kernels than it takes
  // to reject the move.
  bool Evaluate(Promising& tried) {
    EvaluatedMove& evaluated = tried.evaluated;
    const Change& change = evaluated.move.change;
    if (tried.candidate_size != candidate_.size()) tried.regions = candidate_.RegionsAfter(change);
    evaluated.before_us = evaluated.after_us = 0;
    double launch = 0;
    for (int i : change.removed) {
      const CostEstimate& before =
          costs_.ModeledCostOf(candidate_.region(i), candidate_.GroupHash(i)).modeled;
      evaluated.before_us += before.total();
      launch = before.launch;
    }
    if (MakesIndependent(change, tried.regions)) evaluated.after_us -= launch;
    std::vector<NewRegion> order = OrderOfEvaluation(tried);
    for (size_t next = 0; next < order.size(); ++next) {
      const RegionCost& after = costs_.ModeledCostOf(*order[next].region, order[next].hash);
      if (!after.HasKernel()) {
        evaluated.before_us = evaluated.after_us = 0;
        if (policy_ != nullptr) policy_->Impossible(evaluated, after.why_not, log_);
        rejected_moves_.RejectForGood(evaluated, after.why_not);
        return false;
      }
      evaluated.after_us += after.modeled.total();
      if (evaluated.IsWorthwhile()) continue;
      bool is_complete = next + 1 == order.size();
      while (++next < order.size()) evaluated.after_us += order[next].estimate_us;
      if (policy_ != nullptr) policy_->Impossible(evaluated, "by cost", log_);
      rejected_moves_.RejectForGood(evaluated, is_complete ? "" : "in part by estimate");
      return false;
    }
    return true;
  }

  struct NewRegion {
    const FusedRegion* region;
    uint64_t hash;
    const RegionCost* known;  // RegionCosts::FindCost
    double estimate_us;
    // A region that has no kernel makes the move illegal at once.
    enum class Rank : uint8_t { kHasNoKernel, kHasCost, kToBeBuilt };
    Rank rank() const {
      if (known == nullptr) return Rank::kToBeBuilt;
      return known->HasKernel() ? Rank::kHasCost : Rank::kHasNoKernel;
    }
  };
  // The regions of a move; first those that need no kernel to be built, then the costliest by
  // estimate: after it, the move is most likely rejected.
  std::vector<NewRegion> OrderOfEvaluation(const Promising& tried) {
    std::vector<NewRegion> order;
    for (size_t i = 0; i < tried.regions.size(); ++i) {
      const FusedRegion& region = tried.regions[i];
      uint64_t hash = candidate_.RegionHash(region);
      order.push_back({&region, hash, costs_.FindCost(region, hash), tried.estimates_us[i]});
    }
    std::ranges::stable_sort(order, [](const NewRegion& x, const NewRegion& y) {
      return x.rank() != y.rank() ? x.rank() < y.rank() : x.estimate_us > y.estimate_us;
    });
    return order;
  }

  // Whether the new kernels are independent although the old ones were not. They can then share one
  // launch (horizontal.h), which the caller credits.
  bool MakesIndependent(const Change& change, const std::vector<FusedRegion>& regions) const {
    if (credit_ == LaunchCredit::kNo || regions.size() < 2 || change.removed.size() < 2)
      return false;
    std::vector<const FusedRegion*> before, after;
    for (int i : change.removed) before.push_back(&candidate_.region(i));
    for (const FusedRegion& region : regions) after.push_back(&region);
    return AnyReadsAnother(before) && !AnyReadsAnother(after);
  }

  // Skips a move if one of its groups has changed: its evaluation is obsolete.
  void Make(const EvaluatedMove& evaluated, std::vector<int>& changed) {
    const Change& change = evaluated.move.change;
    if (!candidate_.IsStillApplicable(change)) return EnumerateAgain(evaluated, changed);
    std::vector<FusedRegion> regions = candidate_.RegionsAfter(change);
    if (candidate_.MakesCycle(change, regions)) {
      if (policy_ != nullptr) policy_->Impossible(evaluated, "it makes a cycle", log_);
      return;
    }
    size_t first = candidate_.size();
    for (size_t i = 0; i < change.added.size(); ++i) changed.push_back(static_cast<int>(first + i));
    candidate_.Apply(change, std::move(regions));
    log_.Add(DecisionOf(evaluated, Verdict::kAccepted));
    if (policy_ != nullptr) policy_->Made(evaluated, first, log_);
  }

  // A chain has many groups: the one that enumerates its move need not be a neighbour of those that
  // changed. The moves of other rules are about neighbours.
  void EnumerateAgain(const EvaluatedMove& obsolete, std::vector<int>& changed) const {
    if (obsolete.move.rule != "fusion.chain") return;
    int group = candidate_.GroupOf(*obsolete.move.other_value);
    if (group >= 0) changed.push_back(group);
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
  LaunchCredit credit_;
  DecisionLog& log_;
  MovePolicy* policy_;  // may be null
  MoveHasher hasher_;
  RejectedMoves rejected_moves_;
  size_t looked_at_ = 0;
};

}  // namespace

double ModeledCost(const CandidatePlan& candidate, RegionCosts& costs, double enough_us) {
  double total = 0;
  for (size_t i = 0; i < candidate.size() && total <= enough_us; ++i) {
    auto group = static_cast<int>(i);
    if (!candidate.IsLive(group)) continue;
    const RegionCost& evaluated =
        costs.ModeledCostOf(candidate.region(group), candidate.GroupHash(group));
    total += evaluated.HasKernel() ? evaluated.modeled.total() : kNoKernelUs;
  }
  return total;
}

void ImproveBySearch(CandidatePlan& candidate, RegionCosts& costs, const SearchOptions& options,
                     DecisionLog& log, PlanningStats& stats) {
  Search(candidate, costs, options, log).Run(stats);
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
    std::vector<Move> moves = MovesOf(candidate, group, costs.chain_slices());
    if (moves.empty()) continue;
    const Change& change = moves[random() % moves.size()].change;
    std::vector<FusedRegion> regions = candidate.RegionsAfter(change);
    if (IsLegal(change, regions, candidate, costs)) candidate.Apply(change, std::move(regions));
  }
}

ComputationPlan BuildCandidate(const CandidatePlan& candidate, KernelCache& kernel_cache,
                               const ComputationPlan& base_plan, DecisionLog& log) {
  KernelPartition rest;
  std::vector<PlannedKernel> kept;
  for (size_t i = 0; i < candidate.size(); ++i) {
    const FusedRegion& region = candidate.region(static_cast<int>(i));
    if (region.roots.empty()) continue;
    if (i < base_plan.kernels.size()) {
      kept.push_back(base_plan.kernels[i]);
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
