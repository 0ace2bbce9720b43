#include "fusion/greedy.h"

#include <algorithm>
#include <iterator>
#include <queue>
#include <unordered_map>

#include "fusion/enforce_constraints.h"
#include "fusion/evaluated_move.h"
#include "fusion/moves.h"

namespace tokamak {
namespace {

// Moves per initial group at most. Chosen: a backstop against endless improvement.
constexpr size_t kGreedyMaxMoves = 8;

bool Recomputes(const Change& change) {
  return std::any_of(change.added.begin(), change.added.end(),
                     [](const FusionGroup& group) { return !group.recomputed.empty(); });
}

class Greedy {
 public:
  Greedy(CandidatePlan& candidate, RegionCosts& costs, DecisionLog& log, MovePolicy* policy)
      : candidate_(candidate),
        costs_(costs),
        log_(log),
        policy_(policy),
        hasher_(candidate),
        rejected_moves_(candidate),
        visited_(candidate.computation(), 0) {}

  void Run(PlanningStats& stats) {
    size_t built = costs_.kernels_built();
    left_ = kGreedyMaxMoves * candidate_.size();
    double before = Estimate();
    for (size_t i = 0; i < candidate_.size(); ++i) fresh_.push_back(static_cast<int>(i));
    for (const Instr* value : candidate_.order()) changed_.push_back(value);
    // Moves of pairs are evaluated only when no move of a value is worthwhile any more.
    while (left_ > 0) {
      // In iterations: otherwise one group would keep growing and leave nothing to its neighbours.
      for (LookAtChanged(); !queue_.empty() && left_ > 0; LookAtChanged())
        while (!queue_.empty() && left_ > 0) TakeBest();
      if (fresh_.empty()) break;
      LookAtPairs();
    }
    rejected_moves_.LogRejections(log_);
    log_.Add({.pass = "fuse",
              .rule = "fusion.greedy",
              .subject = candidate_.computation().name(),
              .before_us = before,
              .after_us = Estimate(),
              .because = std::to_string(looked_at_) + " moves, " +
                         std::to_string(costs_.kernels_built() - built) + " kernels built"});
    stats.moves_enumerated += static_cast<int64_t>(looked_at_);
  }

 private:
  // The regions that a move produces and their cost in microseconds; empty if not computed yet.
  struct Regions {
    std::vector<FusedRegion> regions;
    std::vector<double> us;
  };

  // Evaluates the moves of all values that groups added in the last iteration read or store.
  void LookAtChanged() {
    std::vector<const Instr*> values;
    values.swap(changed_);
    ++epoch_;
    if (queue_.empty()) waiting_.clear();
    for (const Instr* value : values)
      if (candidate_.GroupOf(*value) >= 0) LookAt(MovesOfValue(candidate_, *value));
  }

  void LookAtPairs() {
    std::vector<int> groups;
    groups.swap(fresh_);
    for (int group : groups)
      if (candidate_.IsLive(group)) LookAt(PairMovesOf(candidate_, group));
  }

  double Estimate() {
    double total = 0;
    for (size_t i = 0; i < candidate_.size(); ++i)
      if (int group = static_cast<int>(i); candidate_.IsLive(group)) total += EstimateOf(group);
    return total;
  }
  double EstimateOf(int group) {
    auto number = static_cast<size_t>(group);
    if (number >= estimates_.size()) estimates_.resize(candidate_.size(), -1);
    double& us = estimates_[number];
    if (us < 0) us = costs_.Estimate(candidate_.region(group), candidate_.GroupHash(group));
    return us;
  }

  // Queues the moves that are worthwhile by estimate.
  void LookAt(std::vector<Move> moves) {
    for (Move& move : moves) {
      ++looked_at_;
      EvaluatedMove evaluated{std::move(move)};
      evaluated.hash = hasher_.HashOf(evaluated.move);
      if (policy_ != nullptr) evaluated.hash = MovePolicy::HashOf(evaluated.hash, evaluated.move);
      if (rejected_moves_.Has(evaluated.hash)) continue;
      for (int i : evaluated.move.change.removed) evaluated.before_us += EstimateOf(i);
      // Structurally equal moves have about the same cost; TakeBest computes the exact one.
      auto [after, is_new] = after_.try_emplace(evaluated.hash);
      if (is_new) after->second = EstimateAfter(evaluated.move.change);
      evaluated.after_us = after->second;
      if (!IsAllowed(evaluated)) continue;
      if (!evaluated.IsWorthwhile()) {
        Impossible(evaluated, "by estimate");
        rejected_moves_.RejectForGood(evaluated, "by estimate");
        continue;
      }
      // A recomputed value may read inputs that no removed group reads. Those may change meanwhile,
      // so the regions are not kept.
      Regions made;
      if (is_new && !Recomputes(evaluated.move.change)) made = TakeTried();
      queue_.push({evaluated.gain_us(), evaluated.hash, waiting_.size()});
      waiting_.push_back({std::move(evaluated), std::move(made)});
    }
  }

  // Asks the policy, if there is one.
  bool IsAllowed(EvaluatedMove& evaluated) {
    if (policy_ == nullptr) return true;
    candidate_.RegionsAfter(evaluated.move.change, tried_);
    if (policy_->Allows(evaluated, candidate_, tried_, costs_, log_)) return true;
    rejected_moves_.RejectForGood(evaluated, "by the policy " + evaluated.policy);
    return false;
  }
  void Impossible(const EvaluatedMove& evaluated, const std::string& why) {
    if (policy_ != nullptr) policy_->Impossible(evaluated, why, log_);
  }

  // Estimated microseconds of the regions that a move produces. Uncached: equal regions are rare
  // here, and hashing costs more than it saves.
  double EstimateAfter(const Change& change) {
    candidate_.RegionsAfter(change, tried_);
    tried_us_.clear();
    double all = 0;
    for (size_t i = 0; i < change.added.size(); ++i)
      all += tried_us_.emplace_back(costs_.Estimate(tried_[i]));
    return all;
  }
  Regions TakeTried() {
    auto begin = std::make_move_iterator(tried_.begin());
    return {{begin, begin + static_cast<int64_t>(tried_us_.size())}, tried_us_};
  }

  void TakeBest() {
    auto [evaluated, made] = std::move(waiting_[queue_.top().number]);
    queue_.pop();
    const Change& change = evaluated.move.change;
    if (rejected_moves_.Has(evaluated.hash) || !candidate_.IsStillApplicable(change)) return;
    // The cheapest check first: it rejects almost half of the remaining moves.
    bool merges = candidate_.IsMerge(change);
    if (merges && candidate_.MergeMakesCycle(change)) return;
    auto& [regions, us] = made;
    bool known = !regions.empty();
    if (!known) regions = candidate_.RegionsAfter(change);
    std::vector<FusedRegionKey> keys = candidate_.KeysOf(regions);
    if (!known) evaluated.after_us = 0;
    for (size_t i = 0; i < regions.size() && !known; ++i)
      evaluated.after_us += us.emplace_back(costs_.Estimate(regions[i], keys[i].hash));
    if (!evaluated.IsWorthwhile()) return rejected_moves_.RejectForGood(evaluated, "by estimate");
    if (std::string why = WhyConstraintBroken(candidate_, change, regions); !why.empty()) {
      Impossible(evaluated, why);
      return rejected_moves_.NoteReason(evaluated, std::move(why));
    }
    if (!costs_.AllHaveReliablyEstimatedKernels(regions, keys) &&
        !(evaluated.is_accepted && costs_.AllHaveKernels(regions))) {
      Impossible(evaluated, "no generator supports it");
      return rejected_moves_.RejectForGood(evaluated, "no generator supports it");
    }
    if (!merges && candidate_.MakesCycle(change, regions)) return;
    int first = static_cast<int>(candidate_.size());
    estimates_.resize(candidate_.size(), -1);
    estimates_.insert(estimates_.end(), us.begin(), us.end());
    candidate_.Apply(change, std::move(regions), std::move(keys));
    --left_;
    log_.Add(DecisionOf(evaluated, Verdict::kAccepted));
    if (policy_ != nullptr) policy_->Made(evaluated, static_cast<size_t>(first), log_);
    LookAround(first);
  }

  // Queues the values that new groups read or store for the next iteration; some of the groups will
  // have changed again by then.
  void LookAround(int first) {
    auto add = [&](const Instr& value) {
      if (visited_[&value] == epoch_) return;
      visited_[&value] = epoch_;
      changed_.push_back(&value);
    };
    for (int group = first; group < static_cast<int>(candidate_.size()); ++group) {
      fresh_.push_back(group);
      for (const Instr* input : candidate_.region(group).inputs) add(*input);
      for (const Instr* root : candidate_.region(group).roots) add(*root);
    }
  }

  // The largest gain first; ties in a canonical order.
  struct QueueEntry {
    double gain;
    uint64_t hash;
    size_t number;
    bool operator<(const QueueEntry& other) const {
      if (gain != other.gain) return gain < other.gain;
      if (hash != other.hash) return hash > other.hash;
      return number > other.number;
    }
  };

  struct Waiting {
    EvaluatedMove evaluated;
    Regions made;
  };

  CandidatePlan& candidate_;
  RegionCosts& costs_;
  DecisionLog& log_;
  MovePolicy* policy_;  // may be null
  MoveHasher hasher_;
  RejectedMoves rejected_moves_;
  std::unordered_map<uint64_t, double> after_;  // by move hash: cost of the new regions
  std::vector<FusedRegion> tried_;              // regions of the last move that was tried
  std::vector<double> tried_us_;                // their costs; tried_ may have more entries
  std::vector<double> estimates_;               // by group; < 0 if not computed
  std::vector<Waiting> waiting_;
  std::priority_queue<QueueEntry> queue_;  // of this iteration
  std::vector<const Instr*> changed_;      // values whose moves the next iteration evaluates
  std::vector<int> fresh_;                 // groups whose pair moves are not evaluated yet
  InstrMap<uint32_t> visited_;
  uint32_t epoch_ = 0;
  size_t left_ = 0;
  size_t looked_at_ = 0;
};

}  // namespace

void ImproveGreedily(CandidatePlan& candidate, RegionCosts& costs, DecisionLog& log,
                     PlanningStats& stats, MovePolicy* policy) {
  Greedy(candidate, costs, log, policy).Run(stats);
}

}  // namespace tokamak
