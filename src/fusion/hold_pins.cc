#include "fusion/hold_pins.h"

#include <algorithm>
#include <map>
#include <set>

#include "fusion/values.h"

namespace tokamak {
namespace {

bool IsPinned(const std::vector<const Instr*>& list, const Instr* instr) {
  return std::find(list.begin(), list.end(), instr) != list.end();
}

class Holder {
 public:
  Holder(Draft& draft, Pricer& pricer, const Pins& pins, DecisionLog& log)
      : draft_(draft), pricer_(pricer), pins_(pins), log_(log) {}

  void Run() {
    if (pins_.HasApartIn(draft_.computation()))
      for (size_t i = 0; i < draft_.size(); ++i) Part(static_cast<int>(i));
    for (const Pin* pin : pins_.TogetherIn(draft_.computation())) Join(*pin);
  }

 private:
  // ---- apart

  // Until nothing is mixed; what comes of it stands at the end of the draft and has its turn.
  void Part(int group) {
    if (!draft_.IsThere(group) || !IsMixed(draft_.region(group), pins_)) return;
    if (PartRoots(group)) return;
    for (const Instr* value : BordersIn(draft_.region(group)))
      if (draft_.HomeOf(*value) < 0) return Store(*value);
    Forget(group);
  }

  int ClassOf(const Instr& root) const { return pins_.ApartOf(root); }

  bool PartRoots(int group) {
    std::map<int, Group> by_class;
    for (const Instr* root : draft_.group(group).roots)
      by_class[ClassOf(*root)].roots.push_back(root);
    if (by_class.size() < 2) return false;
    Change change{{group}, {}};
    for (auto& [number, part] : by_class) change.added.push_back(std::move(part));
    draft_.Apply(change);
    return true;
  }

  // Values that what is of another class computes with, inside of the region.
  std::vector<const Instr*> BordersIn(const Region& region) const {
    std::vector<const Instr*> borders;
    for (const Instr* user : region.instrs) {
      if (IsFree(*user) && ClassOf(*user) < 0) continue;
      std::vector<const Instr*> open(user->operands().begin(), user->operands().end());
      while (!open.empty()) {
        const Instr* value = open.back();
        open.pop_back();
        if (!IsPinned(region.instrs, value)) continue;
        if (IsFree(*value) && ClassOf(*value) < 0) {
          open.insert(open.end(), value->operands().begin(), value->operands().end());
        } else if (ClassOf(*value) != ClassOf(*user) && !IsPinned(borders, value)) {
          borders.push_back(value);
        }
      }
    }
    return borders;
  }

  void Store(const Instr& value) {
    Change change{{}, {Group{{&value}, {}}}};
    for (int other : draft_.ComputedIn(value)) {
      change.removed.push_back(other);
      change.added.push_back(draft_.group(other));
    }
    draft_.Apply(change);
  }

  // What it computes again, it reads.
  void Forget(int group) {
    Group plain{draft_.group(group).roots, {}};
    if (!draft_.group(group).again.empty()) draft_.Apply({{group}, {std::move(plain)}});
  }

  // ---- together

  void Join(const Pin& pin) {
    for (size_t i = 0; i < draft_.size(); ++i)
      if (HoldsAll(draft_.region(static_cast<int>(i)), pin)) return;
    std::set<int> groups;
    for (const Instr* member : pin.members) {
      int home = draft_.HomeOf(*member);
      const std::vector<int>& computed = draft_.ComputedIn(*member);
      if (home < 0 && computed.empty())
        return Refuse(pin, *member,
                      "fusion.outside: a library or the host does " + LabelOf(*member));
      groups.insert(home >= 0 ? home : computed[0]);
    }
    AddBetween(groups);
    std::string why = TryAs(groups, true);
    if (!why.empty()) why = TryAs(groups, false);
    if (!why.empty()) Refuse(pin, *pin.members[0], why);
  }

  // Groups that need something of the set and that the set needs something of: they must be in it.
  void AddBetween(std::set<int>& groups) const {
    for (bool changed = true; changed;) {
      std::set<int> below = Closure(groups, true), above = Closure(groups, false);
      size_t before = groups.size();
      for (int group : below)
        if (above.contains(group)) groups.insert(group);
      changed = groups.size() > before;
    }
  }

  std::set<int> Closure(const std::set<int>& from, bool readers) const {
    std::set<int> seen;
    std::vector<int> open(from.begin(), from.end());
    while (!open.empty()) {
      int group = open.back();
      open.pop_back();
      auto visit = [&](int next) {
        if (next >= 0 && next != group && seen.insert(next).second) open.push_back(next);
      };
      if (readers) {
        for (const Instr* root : draft_.region(group).roots)
          for (int reader : draft_.ReadersOf(*root)) visit(reader);
      } else {
        for (const Instr* input : draft_.region(group).inputs) {
          std::vector<const Instr*> chain = draft_.ChainOf(*input);
          if (!chain.empty()) visit(draft_.HomeOf(*chain.back()));
        }
      }
    }
    return seen;
  }

  // All groups as one. `inside`: what only they need is not stored.
  std::string TryAs(const std::set<int>& groups, bool inside) {
    Change change{{groups.begin(), groups.end()}, {}};
    Group both;
    for (int group : groups) {
      for (const Instr* root : draft_.group(group).roots)
        if (!inside || !IsOnlyFor(*root, groups)) both.roots.push_back(root);
      for (const Instr* instr : draft_.group(group).again)
        if (!IsPinned(both.again, instr)) both.again.push_back(instr);
      for (const Instr* input : draft_.region(group).inputs) {
        std::vector<const Instr*> chain = draft_.ChainOf(*input);
        if (chain.size() < 2 || !groups.contains(draft_.HomeOf(*chain.back()))) continue;
        for (const Instr* instr : chain)
          if (!IsPinned(both.again, instr)) both.again.push_back(instr);
      }
    }
    if (both.roots.empty()) return "nothing of it is stored";
    std::sort(both.roots.begin(), both.roots.end(), [&](const Instr* x, const Instr* y) {
      return draft_.PlaceOf(*x) < draft_.PlaceOf(*y);
    });
    change.added.push_back(std::move(both));
    std::vector<Region> regions = draft_.Try(change);
    if (IsMixed(regions[0], pins_)) return "fusion.pin: never_fuse keeps a part of it apart";
    const RegionPrice& price = pricer_.Of(regions[0]);
    if (!price.IsLegal()) return "fusion.refused: " + price.why_not;
    if (draft_.MakesCycle(change, regions))
      return "fusion.cycle: something outside needs one part and is needed by another";
    draft_.Apply(change);
    return "";
  }

  bool IsOnlyFor(const Instr& root, const std::set<int>& groups) const {
    if (draft_.IsNeeded(root) || IsUpdate(root) || root.op() == Op::kSort) return false;
    const std::vector<int>& readers = draft_.ReadersOf(root);
    return !readers.empty() && std::all_of(readers.begin(), readers.end(),
                                           [&](int reader) { return groups.contains(reader); });
  }

  void Refuse(const Pin& pin, const Instr& subject, const std::string& why) {
    const Instr& other = *pin.members.back();
    log_.Add({.pass = "fuse",
              .rule = "fusion.pin",
              .verdict = Verdict::kRejected,
              .subject = LabelOf(subject),
              .other = &other == &subject ? "" : LabelOf(other),
              .origins = subject.origins(),
              .because = pin.said + ": " + why});
  }

  Draft& draft_;
  Pricer& pricer_;
  const Pins& pins_;
  DecisionLog& log_;
};

}  // namespace

void HoldPins(Draft& draft, Pricer& pricer, const Pins* pins, DecisionLog& log) {
  if (pins == nullptr || pins->empty()) return;
  draft.set_pins(pins);
  Holder(draft, pricer, *pins, log).Run();
}

std::string WhyPinned(const Draft& draft, const Change& change,
                      const std::vector<Region>& regions) {
  const Pins* pins = draft.pins();
  if (pins == nullptr) return "";
  for (const Region& region : regions)
    if (IsMixed(region, *pins)) return "a pin keeps it apart";
  for (const Pin* pin : pins->TogetherIn(draft.computation())) {
    auto holds = [&](const Region& region) { return HoldsAll(region, *pin); };
    bool held = std::any_of(change.removed.begin(), change.removed.end(),
                            [&](int group) { return holds(draft.region(group)); });
    if (held && std::none_of(regions.begin(), regions.end(), holds))
      return pin->said + " keeps it together";
  }
  return "";
}

}  // namespace tokamak
