#include "fusion/moves.h"

#include <algorithm>

#include "fusion/values.h"
#include "gen/element.h"

namespace tokamak {
namespace {

// Neighbours that are looked at for one array that they read in common.
constexpr size_t kMaxSiblings = 8;

bool Contains(const std::vector<const Instr*>& list, const Instr* instr) {
  return std::find(list.begin(), list.end(), instr) != list.end();
}

// Whether its elements can be computed inside of other kernels.
bool MayBeInside(const Instr& value) {
  return !IsUpdate(value) && value.op() != Op::kSort;
}

// Something that a kernel of its own would be worth: it computes, and is an array.
bool MayBeRoot(const Instr& instr) {
  bool moves = instr.info().Is(kDataMovement) || instr.op() == Op::kIota ||
               instr.op() == Op::kConstant || instr.op() == Op::kBroadcast ||
               instr.op() == Op::kGetTupleElement;
  return !moves && !IsAlias(instr);
}

class MoveMaker {
 public:
  MoveMaker(const Draft& draft, int group) : draft_(draft), group_(group) {}

  std::vector<Move> Run() {
    for (const Instr* input : draft_.region(group_).inputs) {
      std::vector<const Instr*> chain = draft_.ChainOf(*input);
      if (!chain.empty()) AddOfInput(*input, chain);
      AddSiblings(*input);
    }
    AddSplits();
    AddStores();
    return std::move(moves_);
  }

 private:
  const Group& Own() const { return draft_.group(group_); }
  const Instr* OwnRoot() const { return Own().roots[0]; }

  void AddOfInput(const Instr& input, const std::vector<const Instr*>& chain) {
    const Instr& value = *chain.back();
    int maker = draft_.HomeOf(value);
    if (maker == group_) return;
    if (MayBeInside(value)) {
      bool needed = draft_.IsNeeded(value);
      if (!needed) AddVertical(value, maker);
      if (needed || draft_.ReadersOf(value).size() > 1) {
        Group again = Own();
        for (const Instr* instr : chain)
          if (!Contains(again.again, instr)) again.again.push_back(instr);
        Add("fusion.again", value, *OwnRoot(), {{group_}, {std::move(again)}});
      }
      if (draft_.group(maker).roots.size() > 1) AddDissolve(maker);
    }
    AddMerge("fusion.merge", input, maker);
  }

  void AddVertical(const Instr& value, int maker) {
    Change change{{maker}, {}};
    Group rest = draft_.group(maker);
    std::erase(rest.roots, &value);
    if (!rest.roots.empty()) change.added.push_back(std::move(rest));
    for (int reader : draft_.ReadersOf(value)) {
      change.removed.push_back(reader);
      change.added.push_back(draft_.group(reader));
    }
    Add("fusion.vertical", value, *OwnRoot(), std::move(change));
  }

  void AddDissolve(int maker) {
    Change change{{maker}, {}};
    for (const Instr* root : draft_.group(maker).roots) {
      if (draft_.IsNeeded(*root) || !MayBeInside(*root)) return;
      for (int reader : draft_.ReadersOf(*root)) {
        if (std::find(change.removed.begin(), change.removed.end(), reader) != change.removed.end())
          continue;
        change.removed.push_back(reader);
        change.added.push_back(draft_.group(reader));
      }
    }
    Add("fusion.dissolve", *draft_.group(maker).roots[0], *OwnRoot(), std::move(change));
  }

  // Both as one: what one reads of the other it computes, also under another shape.
  void AddMerge(std::string_view rule, const Instr& input, int with) {
    Group both = Own();
    const Group& other = draft_.group(with);
    both.roots.insert(both.roots.end(), other.roots.begin(), other.roots.end());
    std::sort(both.roots.begin(), both.roots.end(), [&](const Instr* x, const Instr* y) {
      return draft_.PlaceOf(*x) < draft_.PlaceOf(*y);
    });
    for (const Instr* instr : other.again)
      if (!Contains(both.again, instr)) both.again.push_back(instr);
    for (int side : {group_, with})
      for (const Instr* read : draft_.region(side).inputs) {
        std::vector<const Instr*> chain = draft_.ChainOf(*read);
        if (chain.size() < 2 || !Contains(both.roots, chain.back())) continue;
        for (const Instr* instr : chain)
          if (!Contains(both.again, instr)) both.again.push_back(instr);
      }
    Add(rule, input, *other.roots[0], {{group_, with}, {std::move(both)}});
  }

  void AddSiblings(const Instr& input) {
    const std::vector<int>& readers = draft_.ReadersOf(input);
    auto own = std::find(readers.begin(), readers.end(), group_);
    size_t at = static_cast<size_t>(own - readers.begin());
    // The next ones in order; those before had their turn with this one.
    for (size_t i = at + 1; i < readers.size() && i <= at + kMaxSiblings; ++i)
      AddMerge("fusion.sibling", input, readers[i]);
  }

  void AddSplits() {
    if (Own().roots.size() < 2) return;
    for (const Instr* root : Own().roots) {
      Group rest = Own(), alone{{root}, Own().again};
      std::erase(rest.roots, root);
      Add("fusion.split", *root, *rest.roots[0], {{group_}, {std::move(rest), std::move(alone)}});
    }
  }

  void AddStores() {
    const Region& region = draft_.region(group_);
    for (const Instr* instr : region.instrs) {
      if (!MayBeRoot(*instr) || draft_.HomeOf(*instr) >= 0) continue;
      // Computed at several places, or folded: else storing it cannot pay.
      bool shared = instr->users().size() > 1 || instr->op() == Op::kReduce ||
                    instr->op() == Op::kDot || instr->users()[0]->op() == Op::kBroadcast ||
                    instr->users()[0]->op() == Op::kDot ||
                    instr->users()[0]->op() == Op::kReduceWindow;
      if (!shared) continue;
      Change change{{}, {Group{{instr}, {}}}};
      for (int other : draft_.ComputedIn(*instr)) {
        change.removed.push_back(other);
        change.added.push_back(draft_.group(other));
      }
      // Every group that computes it has its turn; one is enough.
      if (change.removed[0] == group_) Add("fusion.store", *instr, *OwnRoot(), std::move(change));
    }
  }

  void Add(std::string_view rule, const Instr& subject, const Instr& other, Change change) {
    moves_.push_back({rule, &subject, &other, std::move(change)});
  }

  const Draft& draft_;
  int group_;
  std::vector<Move> moves_;
};

}  // namespace

std::vector<Move> MovesOf(const Draft& draft, int group) {
  return MoveMaker(draft, group).Run();
}

}  // namespace tokamak
