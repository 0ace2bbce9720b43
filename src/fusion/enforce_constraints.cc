#include "fusion/enforce_constraints.h"

#include <algorithm>
#include <map>
#include <set>

#include "fusion/instr_predicates.h"

namespace tokamak {
namespace {

class ConstraintEnforcer {
 public:
  ConstraintEnforcer(CandidatePlan& candidate, RegionCosts& costs,
                     const FusionConstraints& constraints, DecisionLog& log)
      : candidate_(candidate), costs_(costs), constraints_(constraints), log_(log) {}

  void Run() {
    if (constraints_.HasNeverFuseIn(candidate_.computation()))
      for (size_t i = 0; i < candidate_.size(); ++i) SplitGroup(static_cast<int>(i));
    for (const FusionConstraint* constraint :
         constraints_.FuseConstraintsIn(candidate_.computation()))
      FuseMembers(*constraint);
  }

 private:
  // ---- never_fuse

  // Splits a group until it mixes nothing. The resulting groups are appended to the candidate, so
  // Run() visits them too.
  void SplitGroup(int group) {
    if (!candidate_.IsLive(group) || !ViolatesNeverFuse(candidate_.region(group), constraints_))
      return;
    if (SplitRoots(group)) return;
    for (const Instr* value : BordersIn(candidate_.region(group)))
      if (candidate_.GroupOf(*value) < 0) return Store(*value);
    StopRecomputing(group);
  }

  // The never_fuse constraint that isolates the value; -1 if none. Values of different classes may
  // not share a kernel.
  int ClassOf(const Instr& root) const { return constraints_.NeverFuseConstraintOf(root); }

  bool SplitRoots(int group) {
    std::map<int, FusionGroup> by_class;
    for (const Instr* root : candidate_.group(group).roots)
      by_class[ClassOf(*root)].roots.push_back(root);
    if (by_class.size() < 2) return false;
    Change change{{group}, {}};
    for (auto& [number, part] : by_class) change.added.push_back(std::move(part));
    candidate_.Apply(change);
    return true;
  }

  // Values in the region that an instruction of another class uses.
  std::vector<const Instr*> BordersIn(const FusedRegion& region) const {
    std::vector<const Instr*> borders;
    for (const Instr* user : region.instrs) {
      if (IsFreeToRecompute(*user) && ClassOf(*user) < 0) continue;
      std::vector<const Instr*> open(user->operands().begin(), user->operands().end());
      while (!open.empty()) {
        const Instr* value = open.back();
        open.pop_back();
        if (!ContainsInstr(region.instrs, value)) continue;
        if (IsFreeToRecompute(*value) && ClassOf(*value) < 0) {
          open.insert(open.end(), value->operands().begin(), value->operands().end());
        } else if (ClassOf(*value) != ClassOf(*user) && !ContainsInstr(borders, value)) {
          borders.push_back(value);
        }
      }
    }
    return borders;
  }

  void Store(const Instr& value) {
    Change change{{}, {FusionGroup{{&value}, {}}}};
    for (int other : candidate_.ComputedIn(value)) {
      change.removed.push_back(other);
      change.added.push_back(candidate_.group(other));
    }
    candidate_.Apply(change);
  }

  // The group loads all values that it recomputed.
  void StopRecomputing(int group) {
    FusionGroup plain{candidate_.group(group).roots, {}};
    if (!candidate_.group(group).recomputed.empty())
      candidate_.Apply({{group}, {std::move(plain)}});
  }

  // ---- fuse, require_fused

  void FuseMembers(const FusionConstraint& constraint) {
    for (size_t i = 0; i < candidate_.size(); ++i)
      if (ComputesAll(candidate_.region(static_cast<int>(i)), constraint)) return;
    std::set<int> groups;
    for (const Instr* member : constraint.members) {
      int group_number = candidate_.GroupOf(*member);
      const std::vector<int>& computed = candidate_.ComputedIn(*member);
      if (group_number < 0 && computed.empty())
        return Reject(constraint, *member,
                      "fusion.outside: a library call or the host computes " + LabelOf(*member));
      groups.insert(group_number >= 0 ? group_number : computed[0]);
    }
    AddBetween(groups);
    std::string why = TryMerge(groups, true);
    if (!why.empty()) why = TryMerge(groups, false);
    if (!why.empty()) Reject(constraint, *constraint.members[0], why);
  }

  // Adds the groups on paths between members of the set: without them the fused kernel would have a
  // cycle.
  void AddBetween(std::set<int>& groups) const {
    for (bool changed = true; changed;) {
      std::set<int> below = Closure(groups, true), above = Closure(groups, false);
      size_t before = groups.size();
      for (int group : below)
        if (above.contains(group)) groups.insert(group);
      changed = groups.size() > before;
    }
  }

  std::set<int> Closure(const std::set<int>& from, bool consumers) const {
    std::set<int> seen;
    std::vector<int> open(from.begin(), from.end());
    while (!open.empty()) {
      int group = open.back();
      open.pop_back();
      auto visit = [&](int next) {
        if (next >= 0 && next != group && seen.insert(next).second) open.push_back(next);
      };
      if (consumers) {
        for (const Instr* root : candidate_.region(group).roots)
          for (int consumer : candidate_.ConsumersOf(*root)) visit(consumer);
      } else {
        for (const Instr* input : candidate_.region(group).inputs) {
          std::vector<const Instr*> chain = candidate_.AliasChainOf(*input);
          if (!chain.empty()) visit(candidate_.GroupOf(*chain.back()));
        }
      }
    }
    return seen;
  }

  // Merges all groups into one. `drop_internal`: values that only they need are not stored. Returns
  // why that is impossible; empty on success.
  std::string TryMerge(const std::set<int>& groups, bool drop_internal) {
    Change change{{groups.begin(), groups.end()}, {}};
    FusionGroup both;
    for (int group : groups) {
      for (const Instr* root : candidate_.group(group).roots)
        if (!drop_internal || !IsOnlyFor(*root, groups)) both.roots.push_back(root);
      for (const Instr* instr : candidate_.group(group).recomputed)
        if (!ContainsInstr(both.recomputed, instr)) both.recomputed.push_back(instr);
      for (const Instr* input : candidate_.region(group).inputs) {
        std::vector<const Instr*> chain = candidate_.AliasChainOf(*input);
        if (chain.size() < 2 || !groups.contains(candidate_.GroupOf(*chain.back()))) continue;
        for (const Instr* instr : chain)
          if (!ContainsInstr(both.recomputed, instr)) both.recomputed.push_back(instr);
      }
    }
    if (both.roots.empty()) return "no value of it is stored";
    std::sort(both.roots.begin(), both.roots.end(), [&](const Instr* x, const Instr* y) {
      return candidate_.PositionOf(*x) < candidate_.PositionOf(*y);
    });
    change.added.push_back(std::move(both));
    std::vector<FusedRegion> regions = candidate_.RegionsAfter(change);
    if (ViolatesNeverFuse(regions[0], constraints_))
      return "fusion.pin: never_fuse applies to a part of it";
    const RegionCost& cost = costs_.ModeledCostOf(regions[0]);
    if (!cost.HasKernel()) return "fusion.rejected: " + cost.why_not;
    if (candidate_.MakesCycle(change, regions))
      return "fusion.cycle: a value outside depends on one part, and another part depends on it";
    candidate_.Apply(change);
    return "";
  }

  bool IsOnlyFor(const Instr& root, const std::set<int>& groups) const {
    if (candidate_.MustBeStored(root) || IsPartialUpdate(root) || root.op() == Op::kSort)
      return false;
    const std::vector<int>& consumers = candidate_.ConsumersOf(root);
    return !consumers.empty() && std::all_of(consumers.begin(), consumers.end(), [&](int consumer) {
      return groups.contains(consumer);
    });
  }

  void Reject(const FusionConstraint& constraint, const Instr& subject, const std::string& why) {
    const Instr& other = *constraint.members.back();
    log_.Add({.pass = "fuse",
              .rule = "fusion.pin",
              .verdict = Verdict::kRejected,
              .subject = LabelOf(subject),
              .other = &other == &subject ? "" : LabelOf(other),
              .origins = subject.origins(),
              .because = constraint.source_text + ": " + why});
  }

  CandidatePlan& candidate_;
  RegionCosts& costs_;
  const FusionConstraints& constraints_;
  DecisionLog& log_;
};

}  // namespace

void EnforceConstraints(CandidatePlan& candidate, RegionCosts& costs,
                        const FusionConstraints* constraints, DecisionLog& log) {
  if (constraints == nullptr || constraints->empty()) return;
  candidate.set_constraints(constraints);
  ConstraintEnforcer(candidate, costs, *constraints, log).Run();
}

std::string WhyConstraintBroken(const CandidatePlan& candidate, const Change& change,
                                const std::vector<FusedRegion>& regions) {
  const FusionConstraints* constraints = candidate.constraints();
  if (constraints == nullptr) return "";
  for (const FusedRegion& region : regions)
    if (ViolatesNeverFuse(region, *constraints)) return "a fusion constraint keeps it separate";
  for (const FusionConstraint* constraint :
       constraints->FuseConstraintsIn(candidate.computation())) {
    auto holds = [&](const FusedRegion& region) { return ComputesAll(region, *constraint); };
    bool held = std::any_of(change.removed.begin(), change.removed.end(),
                            [&](int group) { return holds(candidate.region(group)); });
    if (held && std::none_of(regions.begin(), regions.end(), holds))
      return constraint->source_text + " requires one kernel";
  }
  return "";
}

}  // namespace tokamak
