#include "fusion/search.h"

#include <algorithm>
#include <random>
#include <unordered_set>

#include "fusion/cut.h"
#include "fusion/hold_pins.h"
#include "fusion/moves.h"
#include "fusion/priced_move.h"

namespace tokamak {
namespace {

// An estimate may be so much too high.
constexpr double kDoubt = 1.1;
constexpr int kSearchMaxRounds = 64;
constexpr size_t kManyMoves = 500;
// What has no kernel is the interpreter's: dearer than any.
constexpr double kNoKernelUs = 1e9;

// Whether one of the regions reads what another of them stores.
bool AnyReadsAnother(const std::vector<const Region*>& regions) {
  std::unordered_set<const Instr*> stored;
  for (const Region* region : regions) stored.insert(region->roots.begin(), region->roots.end());
  return std::ranges::any_of(regions, [&](const Region* region) {
    return std::ranges::any_of(region->inputs,
                               [&](const Instr* input) { return stored.contains(input); });
  });
}

class Search {
 public:
  Search(Draft& draft, Pricer& pricer, int64_t budget, DecisionLog& log)
      : draft_(draft),
        pricer_(pricer),
        end_(static_cast<int64_t>(pricer.work_done()) + budget),
        log_(log),
        hasher_(draft),
        refusals_(draft) {}

  void Run(PlanningFacts& facts) {
    std::vector<int> dirty;
    for (size_t i = 0; i < draft_.size(); ++i) dirty.push_back(static_cast<int>(i));
    double before = PriceOf(draft_, pricer_);
    size_t built = pricer_.kernels_built();
    for (int round = 0; round < kSearchMaxRounds && !dirty.empty() && HasBudget(); ++round)
      dirty = Round(dirty);
    refusals_.AddTo(log_);
    log_.Add({.pass = "fuse",
              .rule = "fusion.search",
              .subject = draft_.computation().name(),
              .before_us = before,
              .after_us = PriceOf(draft_, pricer_),
              .because = std::to_string(looked_at_) + " moves, " +
                         std::to_string(pricer_.kernels_built() - built) + " kernels built"});
    facts.moves += static_cast<int64_t>(looked_at_);
  }

 private:
  bool HasBudget() const { return static_cast<int64_t>(pricer_.work_done()) < end_; }

  // Looks at all moves of some groups and makes those that pay, the best first. Gives the groups
  // whose moves may have changed.
  std::vector<int> Round(const std::vector<int>& groups) {
    std::vector<PricedMove> promising, found;
    for (int group : groups) {
      if (!draft_.IsThere(group)) continue;
      for (Move& move : MovesOf(draft_, group)) {
        ++looked_at_;
        PricedMove priced{std::move(move)};
        priced.hash = hasher_.Of(priced.move);
        if (!refusals_.Has(priced.hash) && IsPromising(priced))
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
      if (!HasBudget() || refusals_.Has(priced.hash)) continue;
      if (at_once && !draft_.IsCurrent(priced.move.change)) continue;
      if (!Evaluate(priced)) continue;
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

  // Whether it may pay, as far as can be told without kernels.
  bool IsPromising(PricedMove& priced) {
    const Change& change = priced.move.change;
    priced.before = priced.after = 0;
    for (int i : change.removed)
      priced.before += pricer_.Estimate(draft_.region(i), draft_.HashOf(i));
    std::vector<Region> regions = draft_.Try(change);
    if (std::string why = WhyPinned(draft_, change, regions); !why.empty()) {
      refusals_.Record(priced, std::move(why));
      return false;
    }
    for (const Region& region : regions) {
      priced.after += pricer_.Estimate(region, draft_.HashOf(region));
      if (priced.after > kDoubt * priced.before) break;
    }
    if (priced.after <= kDoubt * priced.before) return true;
    refusals_.Add(priced, "by estimate");
    return false;
  }

  // Whether the move is legal and pays.
  bool Evaluate(PricedMove& priced) {
    const Change& change = priced.move.change;
    priced.before = priced.after = 0;
    for (int i : change.removed)
      priced.before += pricer_.Of(draft_.region(i), draft_.HashOf(i)).price.total();
    std::vector<Region> regions = draft_.Try(change);
    double launch = 0;
    for (const Region& region : regions) {
      const RegionPrice& after = pricer_.Of(region);
      launch = after.price.launch;
      priced.after += after.price.total();
      if (!after.IsLegal()) {
        priced.before = priced.after = 0;
        refusals_.Add(priced, after.why_not);
        return false;
      }
    }
    if (SetsFree(change, regions)) priced.after -= launch;
    if (!priced.pays()) refusals_.Add(priced, "");
    return priced.pays();
  }

  // Whether kernels of a GPU need nothing of each other any more, of which one needed another's:
  // they can be one launch then (packs.h).
  bool SetsFree(const Change& change, const std::vector<Region>& regions) const {
    if (!pricer_.machine().is_gpu() || regions.size() < 2 || change.removed.size() < 2)
      return false;
    std::vector<const Region*> before, after;
    for (int i : change.removed) before.push_back(&draft_.region(i));
    for (const Region& region : regions) after.push_back(&region);
    return AnyReadsAnother(before) && !AnyReadsAnother(after);
  }

  // All that a move replaces must still be there: then it is worth what it was worth.
  void Make(const PricedMove& priced, std::vector<int>& changed) {
    const Change& change = priced.move.change;
    if (!draft_.IsCurrent(change)) return;
    std::vector<Region> regions = draft_.Try(change);
    if (draft_.MakesCycle(change, regions)) return;
    for (size_t i = 0; i < change.added.size(); ++i)
      changed.push_back(static_cast<int>(draft_.size() + i));
    draft_.Apply(change, std::move(regions));
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
  int64_t end_;  // of the work that may be done
  DecisionLog& log_;
  MoveHasher hasher_;
  Refusals refusals_;
  size_t looked_at_ = 0;
};

}  // namespace

double PriceOf(const Draft& draft, Pricer& pricer) {
  double total = 0;
  for (size_t i = 0; i < draft.size(); ++i) {
    auto group = static_cast<int>(i);
    if (!draft.IsThere(group)) continue;
    const RegionPrice& priced = pricer.Of(draft.region(group), draft.HashOf(group));
    total += priced.IsLegal() ? priced.price.total() : kNoKernelUs;
  }
  return total;
}

void Improve(Draft& draft, Pricer& pricer, int64_t budget, DecisionLog& log, PlanningFacts& facts) {
  Search(draft, pricer, budget, log).Run(facts);
}

bool IsLegal(const Change& change, const std::vector<Region>& regions, Draft& draft,
             Pricer& pricer) {
  return WhyPinned(draft, change, regions).empty() && pricer.HaveKernels(regions) &&
         !draft.MakesCycle(change, regions);
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
    if (IsLegal(change, regions, draft, pricer)) draft.Apply(change, std::move(regions));
  }
}

ComputationPlan BuildDraft(const Draft& draft, KernelMemo& kernels, ComputationPlan from,
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
  ComputationPlan plan = BuildCut(rest, kernels, log);
  for (const Instr* instr : draft.order())
    if (plan.why_host[instr].empty()) plan.why_host[instr] = from.why_host[instr];
  for (PlannedKernel& planned : kept) AddKernel(plan, std::move(planned));
  return plan;
}

}  // namespace tokamak
