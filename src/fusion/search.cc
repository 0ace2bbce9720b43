#include "fusion/search.h"

#include <algorithm>
#include <map>
#include <random>
#include <unordered_map>
#include <unordered_set>

#include "fusion/cut.h"
#include "fusion/hold_pins.h"
#include "fusion/moves.h"
#include "fusion/pricer.h"
#include "fusion/regions.h"
#include "support/hash.h"

namespace tokamak {
namespace {

// A move pays when it saves this share of what it touches. One that makes more kernels of fewer
// saves no bytes and no launch that is certain, only work as far as it is counted right: prices err
// by a fifth (docs/results/model.md).
constexpr double kLeastShare = 0.02, kLeastShareOfCuts = 0.2;
// An estimate may be so much too high.
constexpr double kDoubt = 1.1;
constexpr int kMaxRounds = 64;
constexpr size_t kManyMoves = 500;

// A move with what it does to the price; microseconds of the groups that it touches.
struct PricedMove {
  Move move;
  uint64_t hash = 0;
  double before = 0, after = 0;

  double gain() const { return before - after; }
  bool pays() const {
    bool cuts = move.change.added.size() > move.change.removed.size();
    return gain() > (cuts ? kLeastShareOfCuts : kLeastShare) * before;
  }
};

class Search {
 public:
  Search(Draft& draft, Pricer& pricer, PriceLevel level, int64_t probes, DecisionLog& log)
      : draft_(draft),
        pricer_(pricer),
        level_(level),
        probes_(static_cast<int64_t>(pricer.kernels_built()) + probes),
        log_(log) {}

  void Run() {
    std::vector<int> dirty;
    for (size_t i = 0; i < draft_.size(); ++i) dirty.push_back(static_cast<int>(i));
    double before = PriceOf(draft_, pricer_, level_);
    size_t built = pricer_.kernels_built();
    for (int round = 0; round < kMaxRounds && !dirty.empty() && HasBudget(); ++round)
      dirty = Round(dirty);
    for (auto& [subject, refusal] : refusals_)
      if (draft_.HomeOf(*subject) >= 0) log_.Add(std::move(refusal));
    log_.Add({.pass = "fuse",
              .rule = IsExact() ? "fusion.search" : "fusion.greedy",
              .subject = draft_.computation().name(),
              .before_us = before,
              .after_us = PriceOf(draft_, pricer_, level_),
              .because = std::to_string(looked_at_) + " moves, " +
                         std::to_string(pricer_.kernels_built() - built) + " kernels built"});
  }

 private:
  bool IsExact() const { return level_ == PriceLevel::kKernels; }
  bool HasBudget() const { return static_cast<int64_t>(pricer_.kernels_built()) < probes_; }

  // Looks at all moves of some groups and makes those that pay, the best first. Gives the groups
  // whose moves may have changed.
  std::vector<int> Round(const std::vector<int>& groups) {
    std::vector<PricedMove> promising, found;
    for (int group : groups) {
      if (!draft_.IsThere(group)) continue;
      for (Move& move : MovesOf(draft_, group)) {
        ++looked_at_;
        PricedMove priced{std::move(move)};
        priced.hash = HashOf(priced.move);
        if (!refused_.contains(priced.hash) && IsPromising(priced))
          promising.push_back(std::move(priced));
      }
    }
    auto better = [](const PricedMove& x, const PricedMove& y) { return x.gain() > y.gain(); };
    std::stable_sort(promising.begin(), promising.end(), better);
    // Of very many, each is made as soon as it is found to pay: most of the others touch the same
    // groups, and are not worth a kernel any more.
    bool at_once = promising.size() > kManyMoves;
    std::vector<int> changed;
    for (PricedMove& priced : promising) {
      if (!HasBudget() || refused_.contains(priced.hash)) continue;
      if (at_once && !IsCurrent(priced)) continue;
      if (!(IsExact() ? Evaluate(priced) : priced.pays())) continue;
      if (at_once) {
        Make(priced, changed);
      } else {
        found.push_back(std::move(priced));
      }
    }
    std::stable_sort(found.begin(), found.end(), better);
    for (const PricedMove& priced : found) Make(priced, changed);
    return Neighbours(changed);
  }

  // Equal for moves that are alike: of groups that compute the same and share the same inputs.
  // Groups that share more than that may differ all the same, so that this only tells which moves
  // are not worth another look.
  uint64_t HashOf(const Move& move) {
    Hasher hasher;
    hasher.Add(move.rule);
    std::unordered_map<const Instr*, size_t> numbers;
    auto number = [&](const Instr* instr) {
      return numbers.emplace(instr, numbers.size()).first->second;
    };
    for (int i : move.change.removed) {
      hasher.Add(draft_.HashOf(i));
      hasher.Add(draft_.group(i).again.size());
      for (const Instr* input : draft_.region(i).inputs) hasher.Add(number(input));
      for (const Instr* root : draft_.region(i).roots) hasher.Add(number(root));
    }
    for (const Group& group : move.change.added) {
      hasher.Add(group.again.size());
      for (const Instr* root : group.roots) hasher.Add(number(root));
    }
    // Where something inside begins a group of its own.
    if (draft_.HomeOf(*move.subject) < 0) {
      const std::vector<const Instr*>& instrs = draft_.region(move.change.removed[0]).instrs;
      auto at = std::find(instrs.begin(), instrs.end(), move.subject);
      hasher.Add(static_cast<uint64_t>(at - instrs.begin()));
    }
    return hasher.digest();
  }

  // Whether it may pay, as far as can be told without kernels.
  bool IsPromising(PricedMove& priced) {
    const Change& change = priced.move.change;
    priced.before = priced.after = 0;
    for (int i : change.removed)
      priced.before += pricer_.Estimate(draft_.region(i), draft_.HashOf(i));
    std::vector<Region> regions = draft_.Try(change);
    if (std::string why = WhyPinned(draft_, change, regions); !why.empty()) {
      Record(priced, std::move(why));
      return false;
    }
    for (const Region& region : regions) {
      priced.after += pricer_.Estimate(region, StructuralHash(region));
      if (priced.after > kDoubt * priced.before) break;
    }
    if (priced.after <= kDoubt * priced.before) return true;
    Refuse(priced, "by estimate");
    return false;
  }

  // Kept until the end: of what is still two kernels then, the reasons are told.
  void Refuse(const PricedMove& priced, std::string because) {
    refused_.insert(priced.hash);
    Record(priced, std::move(because));
  }

  void Record(const PricedMove& priced, std::string because) {
    auto [at, is_new] =
        refusals_by_.try_emplace({priced.move.subject, priced.move.rule}, refusals_.size());
    if (is_new) refusals_.emplace_back();
    refusals_[at->second] = {priced.move.subject, RecordOf(priced, Verdict::kRejected)};
    refusals_[at->second].second.because = std::move(because);
  }

  static Decision RecordOf(const PricedMove& priced, Verdict verdict) {
    return {.pass = "fuse",
            .rule = priced.move.rule,
            .verdict = verdict,
            .subject = LabelOf(*priced.move.subject),
            .other = LabelOf(*priced.move.other),
            .origins = priced.move.subject->origins(),
            .before_us = priced.before,
            .after_us = priced.after};
  }

  // Whether the move is legal and pays.
  bool Evaluate(PricedMove& priced) {
    const Change& change = priced.move.change;
    priced.before = priced.after = 0;
    for (int i : change.removed)
      priced.before += pricer_.Of(draft_.region(i), draft_.HashOf(i)).price.total();
    for (const Region& region : draft_.Try(change)) {
      const RegionPrice& after = pricer_.Of(region);
      priced.after += after.price.total();
      if (!after.IsLegal()) {
        priced.before = priced.after = 0;
        Refuse(priced, after.why_not);
        return false;
      }
    }
    if (!priced.pays()) Refuse(priced, "");
    return priced.pays();
  }

  bool IsCurrent(const PricedMove& priced) const {
    const std::vector<int>& groups = priced.move.change.removed;
    return std::all_of(groups.begin(), groups.end(), [&](int i) { return draft_.IsThere(i); });
  }

  // All that a move replaces must still be there: then it is worth what it was worth.
  void Make(const PricedMove& priced, std::vector<int>& changed) {
    if (!IsCurrent(priced)) return;
    const Change& change = priced.move.change;
    std::vector<Region> regions = draft_.Try(change);
    if (!IsExact() && !pricer_.HaveKernels(regions)) {
      refused_.insert(priced.hash);
      return;
    }
    if (draft_.MakesCycle(change, regions)) return;
    for (size_t i = 0; i < change.added.size(); ++i)
      changed.push_back(static_cast<int>(draft_.size() + i));
    draft_.Apply(change);
    log_.Add(RecordOf(priced, Verdict::kTaken));
  }

  std::vector<int> Neighbours(const std::vector<int>& changed) const {
    std::vector<int> dirty;
    std::unordered_set<int> seen;
    auto add = [&](int group) {
      if (draft_.IsThere(group) && seen.insert(group).second) dirty.push_back(group);
    };
    for (int group : changed) {
      if (!draft_.IsThere(group)) continue;
      add(group);
      for (const Instr* root : draft_.group(group).roots)
        for (int reader : draft_.ReadersOf(*root)) add(reader);
    }
    return dirty;
  }

  Draft& draft_;
  Pricer& pricer_;
  PriceLevel level_;
  int64_t probes_;
  DecisionLog& log_;
  std::unordered_set<uint64_t> refused_;  // moves, by hash
  // What was refused last of each value, by rule.
  std::vector<std::pair<const Instr*, Decision>> refusals_;
  std::map<std::pair<const Instr*, std::string_view>, size_t> refusals_by_;
  size_t looked_at_ = 0;
};

}  // namespace

double PriceOf(const Draft& draft, Pricer& pricer, PriceLevel level) {
  double total = 0;
  for (size_t i = 0; i < draft.size(); ++i) {
    const Region& region = draft.region(static_cast<int>(i));
    if (region.roots.empty()) continue;
    uint64_t hash = draft.HashOf(static_cast<int>(i));
    total += level == PriceLevel::kKernels ? pricer.Of(region, hash).price.total()
                                           : pricer.Estimate(region, hash);
  }
  return total;
}

void Improve(Draft& draft, Pricer& pricer, PriceLevel level, int64_t probes, DecisionLog& log) {
  Search(draft, pricer, level, probes, log).Run();
}

void MakeRandomMoves(Draft& draft, Pricer& pricer, int64_t moves_per_group, uint64_t seed) {
  std::mt19937_64 random(seed);
  int64_t left = moves_per_group * static_cast<int64_t>(draft.size());
  while (left-- > 0 && draft.size() > 0) {
    int group = static_cast<int>(random() % draft.size());
    if (!draft.IsThere(group)) continue;
    std::vector<Move> moves = MovesOf(draft, group);
    if (moves.empty()) continue;
    const Change& change = moves[random() % moves.size()].change;
    std::vector<Region> regions = draft.Try(change);
    if (WhyPinned(draft, change, regions).empty() && pricer.HaveKernels(regions) &&
        !draft.MakesCycle(change, regions))
      draft.Apply(change);
  }
}

ComputationPlan BuildDraft(const Draft& draft, Pricer& pricer, ComputationPlan from,
                           DecisionLog& log) {
  Cut rest;
  std::vector<PlannedKernel> kept;
  for (size_t i = 0; i < draft.size(); ++i) {
    const Region& region = draft.region(static_cast<int>(i));
    if (region.roots.empty()) continue;
    if (i < from.kernels.size()) {
      kept.push_back(std::move(from.kernels[i]));
    } else {
      rest.regions.push_back({region.instrs, region.roots});
    }
  }
  ComputationPlan plan = BuildCut(draft.computation(), rest, pricer.machine(), log);
  for (const Instr* instr : draft.order())
    if (plan.why_host[instr].empty()) plan.why_host[instr] = from.why_host[instr];
  for (PlannedKernel& planned : kept) {
    int number = static_cast<int>(plan.kernels.size());
    for (const Instr* instr : planned.region.instrs)
      if (plan.kernel_of[instr] < 0) plan.inside[instr] = true;
    for (const Instr* root : planned.region.roots) {
      plan.kernel_of[root] = number;
      plan.inside[root] = false;
    }
    plan.kernels.push_back(std::move(planned));
  }
  return plan;
}

}  // namespace tokamak
