#include "fusion/greedy.h"

#include <algorithm>
#include <iterator>
#include <queue>
#include <unordered_map>

#include "fusion/hold_pins.h"
#include "fusion/moves.h"
#include "fusion/priced_move.h"

namespace tokamak {
namespace {

// Moves that are made for each group of the beginning, at most.
constexpr size_t kGreedyMaxMoves = 8;

bool ComputesAgain(const Change& change) {
  return std::any_of(change.added.begin(), change.added.end(),
                     [](const Group& group) { return !group.again.empty(); });
}

class Greedy {
 public:
  Greedy(Draft& draft, Pricer& pricer, DecisionLog& log)
      : draft_(draft),
        pricer_(pricer),
        log_(log),
        hasher_(draft),
        refusals_(draft),
        met_(draft.computation(), 0) {}

  void Run(PlanningFacts& facts) {
    size_t built = pricer_.kernels_built();
    left_ = kGreedyMaxMoves * draft_.size();
    double before = Estimate();
    for (size_t i = 0; i < draft_.size(); ++i) fresh_.push_back(static_cast<int>(i));
    for (const Instr* value : draft_.order()) changed_.push_back(value);
    // What one group is to its neighbours is looked at when no value has a better place left.
    while (left_ > 0) {
      // In rounds: else one group would grow, and leave nothing for its neighbours.
      for (LookAtChanged(); !queue_.empty() && left_ > 0; LookAtChanged())
        while (!queue_.empty() && left_ > 0) TakeBest();
      if (fresh_.empty()) break;
      LookAtSides();
    }
    refusals_.AddTo(log_);
    log_.Add({.pass = "fuse",
              .rule = "fusion.greedy",
              .subject = draft_.computation().name(),
              .before_us = before,
              .after_us = Estimate(),
              .because = std::to_string(looked_at_) + " moves, " +
                         std::to_string(pricer_.kernels_built() - built) + " kernels built"});
    facts.moves += static_cast<int64_t>(looked_at_);
  }

 private:
  // What a move makes, and microseconds of each; empty: to be found.
  struct Regions {
    std::vector<Region> regions;
    std::vector<double> us;
  };

  // The moves of all values that groups read or make that came in the last round.
  void LookAtChanged() {
    std::vector<const Instr*> values;
    values.swap(changed_);
    ++round_;
    if (queue_.empty()) waiting_.clear();
    for (const Instr* value : values)
      if (draft_.HomeOf(*value) >= 0) LookAt(MovesOfValue(draft_, *value));
  }

  void LookAtSides() {
    std::vector<int> groups;
    groups.swap(fresh_);
    for (int group : groups)
      if (draft_.IsThere(group)) LookAt(SideMovesOf(draft_, group));
  }

  double Estimate() {
    double total = 0;
    for (size_t i = 0; i < draft_.size(); ++i)
      if (int group = static_cast<int>(i); draft_.IsThere(group)) total += EstimateOf(group);
    return total;
  }
  double EstimateOf(int group) {
    auto number = static_cast<size_t>(group);
    if (number >= estimates_.size()) estimates_.resize(draft_.size(), -1);
    double& us = estimates_[number];
    if (us < 0) us = pricer_.Estimate(draft_.region(group), draft_.HashOf(group));
    return us;
  }

  // Puts those that may pay into the queue.
  void LookAt(std::vector<Move> moves) {
    for (Move& move : moves) {
      ++looked_at_;
      PricedMove priced{std::move(move)};
      priced.hash = hasher_.Of(priced.move);
      if (refusals_.Has(priced.hash)) continue;
      for (int i : priced.move.change.removed) priced.before += EstimateOf(i);
      // Moves that are alike are worth the same, about; when one is made, it is known exactly.
      auto [after, is_new] = after_.try_emplace(priced.hash);
      if (is_new) after->second = TryOut(priced.move.change);
      priced.after = after->second;
      if (!priced.pays()) {
        refusals_.Add(priced, "by estimate");
        continue;
      }
      // What is computed again may read what no removed group reads: that can change meanwhile.
      Regions made;
      if (is_new && !ComputesAgain(priced.move.change)) made = TakeTried();
      queue_.push({priced.gain(), priced.hash, waiting_.size()});
      waiting_.push_back({std::move(priced), std::move(made)});
    }
  }

  // Microseconds of what a move would make. Regions that are alike are rarely met here: their
  // hashes would cost more than they save.
  double TryOut(const Change& change) {
    draft_.Try(change, tried_);
    tried_us_.clear();
    double all = 0;
    for (size_t i = 0; i < change.added.size(); ++i)
      all += tried_us_.emplace_back(pricer_.Estimate(tried_[i]));
    return all;
  }
  Regions TakeTried() {
    auto begin = std::make_move_iterator(tried_.begin());
    return {{begin, begin + static_cast<int64_t>(tried_us_.size())}, tried_us_};
  }

  void TakeBest() {
    auto [priced, made] = std::move(waiting_[queue_.top().number]);
    queue_.pop();
    const Change& change = priced.move.change;
    if (refusals_.Has(priced.hash) || !draft_.IsCurrent(change)) return;
    // The cheapest question first: almost half of what is left is refused by it.
    bool merges = draft_.IsMerge(change);
    if (merges && draft_.LiesBetween(change)) return;
    auto& [regions, us] = made;
    bool known = !regions.empty();
    if (!known) regions = draft_.Try(change);
    std::vector<RegionKey> keys = draft_.KeysOf(regions);
    if (!known) priced.after = 0;
    for (size_t i = 0; i < regions.size() && !known; ++i)
      priced.after += us.emplace_back(pricer_.Estimate(regions[i], keys[i].hash));
    if (!priced.pays()) return refusals_.Add(priced, "by estimate");
    if (std::string why = WhyPinned(draft_, change, regions); !why.empty())
      return refusals_.Record(priced, std::move(why));
    if (!pricer_.HaveSimpleKernels(regions, keys))
      return refusals_.Add(priced, "no generator takes it");
    if (!merges && draft_.MakesCycle(change, regions)) return;
    int first = static_cast<int>(draft_.size());
    estimates_.resize(draft_.size(), -1);
    estimates_.insert(estimates_.end(), us.begin(), us.end());
    draft_.Apply(change, std::move(regions), std::move(keys));
    --left_;
    log_.Add(RecordOf(priced, Verdict::kTaken));
    LookAround(first);
  }

  // What new groups read or make is looked at when the round is over: until then some of them have
  // changed again.
  void LookAround(int first) {
    auto add = [&](const Instr& value) {
      if (met_[&value] == round_) return;
      met_[&value] = round_;
      changed_.push_back(&value);
    };
    for (int group = first; group < static_cast<int>(draft_.size()); ++group) {
      fresh_.push_back(group);
      for (const Instr* input : draft_.region(group).inputs) add(*input);
      for (const Instr* root : draft_.region(group).roots) add(*root);
    }
  }

  // The greatest gain first; of equal ones, an order that follows from what they do.
  struct Place {
    double gain;
    uint64_t hash;
    size_t number;
    bool operator<(const Place& other) const {
      if (gain != other.gain) return gain < other.gain;
      if (hash != other.hash) return hash > other.hash;
      return number > other.number;
    }
  };

  struct Waiting {
    PricedMove priced;
    Regions made;
  };

  Draft& draft_;
  Pricer& pricer_;
  DecisionLog& log_;
  MoveHasher hasher_;
  Refusals refusals_;
  std::unordered_map<uint64_t, double> after_;  // what a move makes costs, by hash
  std::vector<Region> tried_;                   // what the last move makes that was tried out
  std::vector<double> tried_us_;                // of each; tried_ may have more
  std::vector<double> estimates_;               // of groups, by number; < 0: not known
  std::vector<Waiting> waiting_;
  std::priority_queue<Place> queue_;   // of this round
  std::vector<const Instr*> changed_;  // values to be looked at in the next
  std::vector<int> fresh_;             // groups whose neighbours have not been looked at
  InstrMap<uint32_t> met_;
  uint32_t round_ = 0;
  size_t left_ = 0;
  size_t looked_at_ = 0;
};

}  // namespace

void ImproveGreedily(Draft& draft, Pricer& pricer, DecisionLog& log, PlanningFacts& facts) {
  Greedy(draft, pricer, log).Run(facts);
}

}  // namespace tokamak
