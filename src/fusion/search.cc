#include "fusion/search.h"

#include <algorithm>
#include <random>
#include <unordered_set>

#include "fusion/cut.h"
#include "fusion/evaluated_move.h"
#include "fusion/hold_pins.h"
#include "fusion/moves.h"

namespace tokamak {
namespace {

// A move is dropped without building kernels if its estimate exceeds this multiple of the old cost.
// Chosen: margin for the error of estimates from instruction counts.
constexpr double kDoubt = 1.1;
// Iterations at most. Chosen as a backstop: the search ends when no group has changed.
constexpr int kSearchMaxIterations = 64;
// With more promising moves than this per iteration, each is applied as soon as it is known to pay.
// Chosen: keeps the planning time of large programs bounded.
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
  Search(CandidatePlan& candidate, RegionCosts& costs, int64_t budget, DecisionLog& log)
      : candidate_(candidate),
        costs_(costs),
        end_(static_cast<int64_t>(costs.work_done()) + budget),
        log_(log),
        hasher_(candidate),
        rejected_moves_(candidate) {}

  void Run(PlanningFacts& facts) {
    std::vector<int> dirty;
    for (size_t i = 0; i < candidate_.size(); ++i) dirty.push_back(static_cast<int>(i));
    double before = EstimateCost(candidate_, costs_);
    size_t built = costs_.kernels_built();
    for (int iteration = 0; iteration < kSearchMaxIterations && !dirty.empty() && HasBudget();
         ++iteration)
      dirty = SearchOnce(dirty);
    rejected_moves_.AddTo(log_);
    log_.Add({.pass = "fuse",
              .rule = "fusion.search",
              .subject = candidate_.computation().name(),
              .before_us = before,
              .after_us = EstimateCost(candidate_, costs_),
              .because = std::to_string(looked_at_) + " moves, " +
                         std::to_string(costs_.kernels_built() - built) + " kernels built"});
    facts.moves += static_cast<int64_t>(looked_at_);
  }

 private:
  bool HasBudget() const { return static_cast<int64_t>(costs_.work_done()) < end_; }

  // Evaluates all moves of these groups and applies those that pay, the best first. Returns the
  // groups whose moves may have changed.
  std::vector<int> SearchOnce(const std::vector<int>& groups) {
    std::vector<EvaluatedMove> promising, found;
    for (int group : groups) {
      if (!candidate_.IsLive(group)) continue;
      for (Move& move : MovesOf(candidate_, group)) {
        ++looked_at_;
        EvaluatedMove evaluated{std::move(move)};
        evaluated.hash = hasher_.Of(evaluated.move);
        if (!rejected_moves_.Has(evaluated.hash) && IsPromising(evaluated))
          promising.push_back(std::move(evaluated));
      }
    }
    auto better = [](const EvaluatedMove& x, const EvaluatedMove& y) {
      return x.gain() > y.gain();
    };
    std::stable_sort(promising.begin(), promising.end(), better);
    // With very many moves, each is applied as soon as it is known to pay: most of the others touch
    // the same groups and are then obsolete, so building their kernels would be wasted.
    bool at_once = promising.size() > kManyMoves;
    std::vector<int> changed;
    for (EvaluatedMove& evaluated : promising) {
      if (!HasBudget() || rejected_moves_.Has(evaluated.hash)) continue;
      if (at_once && !candidate_.IsCurrent(evaluated.move.change)) continue;
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

  // Whether the move may pay by estimates, without building kernels.
  bool IsPromising(EvaluatedMove& evaluated) {
    const Change& change = evaluated.move.change;
    evaluated.before = evaluated.after = 0;
    for (int i : change.removed)
      evaluated.before += costs_.Estimate(candidate_.region(i), candidate_.HashOf(i));
    std::vector<FusedRegion> regions = candidate_.Try(change);
    if (std::string why = WhyPinned(candidate_, change, regions); !why.empty()) {
      rejected_moves_.Record(evaluated, std::move(why));
      return false;
    }
    for (const FusedRegion& region : regions) {
      evaluated.after += costs_.Estimate(region, candidate_.HashOf(region));
      if (evaluated.after > kDoubt * evaluated.before) break;
    }
    if (evaluated.after <= kDoubt * evaluated.before) return true;
    rejected_moves_.Add(evaluated, "by estimate");
    return false;
  }

  // Whether the move is legal and pays.
  bool Evaluate(EvaluatedMove& evaluated) {
    const Change& change = evaluated.move.change;
    evaluated.before = evaluated.after = 0;
    for (int i : change.removed)
      evaluated.before += costs_.Of(candidate_.region(i), candidate_.HashOf(i)).estimate.total();
    std::vector<FusedRegion> regions = candidate_.Try(change);
    double launch = 0;
    for (const FusedRegion& region : regions) {
      const RegionCost& after = costs_.Of(region);
      launch = after.estimate.launch;
      evaluated.after += after.estimate.total();
      if (!after.IsLegal()) {
        evaluated.before = evaluated.after = 0;
        rejected_moves_.Add(evaluated, after.why_not);
        return false;
      }
    }
    if (SetsFree(change, regions)) evaluated.after -= launch;
    if (!evaluated.pays()) rejected_moves_.Add(evaluated, "");
    return evaluated.pays();
  }

  // GPU only: whether the new kernels are independent although the old ones were not. They can then
  // share one launch (horizontal.h), which the caller credits.
  bool SetsFree(const Change& change, const std::vector<FusedRegion>& regions) const {
    if (!costs_.machine().is_gpu() || regions.size() < 2 || change.removed.size() < 2) return false;
    std::vector<const FusedRegion*> before, after;
    for (int i : change.removed) before.push_back(&candidate_.region(i));
    for (const FusedRegion& region : regions) after.push_back(&region);
    return AnyReadsAnother(before) && !AnyReadsAnother(after);
  }

  // Skips a move if one of its groups has changed: its evaluation is obsolete.
  void Make(const EvaluatedMove& evaluated, std::vector<int>& changed) {
    const Change& change = evaluated.move.change;
    if (!candidate_.IsCurrent(change)) return;
    std::vector<FusedRegion> regions = candidate_.Try(change);
    if (candidate_.MakesCycle(change, regions)) return;
    for (size_t i = 0; i < change.added.size(); ++i)
      changed.push_back(static_cast<int>(candidate_.size() + i));
    candidate_.Apply(change, std::move(regions));
    log_.Add(RecordOf(evaluated, Verdict::kAccepted));
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
  int64_t end_;  // value of RegionCosts::work_done() at which the search stops
  DecisionLog& log_;
  MoveHasher hasher_;
  RejectedMoves rejected_moves_;
  size_t looked_at_ = 0;
};

}  // namespace

double EstimateCost(const CandidatePlan& candidate, RegionCosts& costs) {
  double total = 0;
  for (size_t i = 0; i < candidate.size(); ++i) {
    auto group = static_cast<int>(i);
    if (!candidate.IsLive(group)) continue;
    const RegionCost& evaluated = costs.Of(candidate.region(group), candidate.HashOf(group));
    total += evaluated.IsLegal() ? evaluated.estimate.total() : kNoKernelUs;
  }
  return total;
}

void Improve(CandidatePlan& candidate, RegionCosts& costs, int64_t budget, DecisionLog& log,
             PlanningFacts& facts) {
  Search(candidate, costs, budget, log).Run(facts);
}

bool IsLegal(const Change& change, const std::vector<FusedRegion>& regions,
             CandidatePlan& candidate, RegionCosts& costs) {
  return WhyPinned(candidate, change, regions).empty() && costs.HaveKernels(regions) &&
         !candidate.MakesCycle(change, regions);
}

void MakeRandomMoves(CandidatePlan& candidate, RegionCosts& costs, int64_t moves_per_group,
                     uint64_t seed) {
  std::mt19937_64 random(seed);
  int64_t left = moves_per_group * static_cast<int64_t>(candidate.size());
  while (left-- > 0 && candidate.size() > 0) {
    int group = static_cast<int>(random() % candidate.size());
    if (!candidate.IsLive(group)) continue;
    std::vector<Move> moves = MovesOf(candidate, group);
    if (moves.empty()) continue;
    const Change& change = moves[random() % moves.size()].change;
    std::vector<FusedRegion> regions = candidate.Try(change);
    if (IsLegal(change, regions, candidate, costs)) candidate.Apply(change, std::move(regions));
  }
}

ComputationPlan BuildCandidate(const CandidatePlan& candidate, KernelMemo& kernels,
                               ComputationPlan from, DecisionLog& log) {
  Cut rest;
  std::vector<PlannedKernel> kept;
  for (size_t i = 0; i < candidate.size(); ++i) {
    const FusedRegion& region = candidate.region(static_cast<int>(i));
    if (region.roots.empty()) continue;
    if (i < from.kernels.size()) {
      kept.push_back(std::move(from.kernels[i]));
    } else {
      rest.regions.push_back({region.instrs, region.roots});
    }
  }
  ComputationPlan plan = BuildCut(rest, kernels, log);
  for (const Instr* instr : candidate.order())
    if (plan.why_host[instr].empty()) plan.why_host[instr] = from.why_host[instr];
  for (PlannedKernel& planned : kept) AddKernel(plan, std::move(planned));
  return plan;
}

}  // namespace tokamak
