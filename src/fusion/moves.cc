#include "fusion/moves.h"

#include <algorithm>
#include <map>

#include "fusion/necks.h"
#include "fusion/values.h"
#include "gen/element.h"

namespace tokamak {
namespace {

// Users of a value that a move may touch, or that are looked at as neighbours.
constexpr size_t kMaxReaders = 16;
// They have at least one of so many bytes in common.
constexpr int64_t kLeastShared = 4;

bool IsMoved(const std::vector<const Instr*>& list, const Instr* instr) {
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
      if (const Instr* stored = draft_.StoredBehind(*input)) AddOfInput(*input, *stored);
    }
    AddSiblings(Pairs::kLater);
    AddSplits();
    AddStores();
    return std::move(moves_);
  }

  std::vector<Move> RunValue(const Instr& value) {
    const std::vector<int>& readers = draft_.ReadersOf(value);
    if (readers.empty() || readers.size() > kMaxReaders) return {};
    int maker = draft_.HomeOf(value);
    bool needed = draft_.IsNeeded(value);
    group_ = readers[0];
    moves_.reserve(1 + readers.size());
    if (!needed && MayBeInside(value)) AddVertical(value, maker);
    if (!needed && readers.size() < 2) return std::move(moves_);
    for (int reader : readers) {
      group_ = reader;
      if (reader != maker) AddMerge("fusion.merge", value, maker);
    }
    return std::move(moves_);
  }

  std::vector<Move> RunSides() {
    for (const Instr* input : draft_.region(group_).inputs) {
      const Instr* stored = draft_.StoredBehind(*input);
      if (stored == nullptr || draft_.HomeOf(*stored) == group_) continue;
      if (MayBeInside(*stored)) {
        AddAgain(*input, *stored);
        AddDissolve(*stored);
      }
      // All others are moves of values.
      bool once = draft_.ReadersOf(*stored).size() < 2 && !draft_.IsNeeded(*stored);
      if (stored != input || once) AddMerge("fusion.merge", *input, draft_.HomeOf(*stored));
    }
    AddSiblings(Pairs::kAll);
    return std::move(moves_);
  }

 private:
  // Of pairs of groups: those with a later one, or all.
  enum class Pairs : uint8_t { kLater, kAll };

  const Group& Own() const { return draft_.group(group_); }
  const Instr* OwnRoot() const { return Own().roots[0]; }

  void AddOfInput(const Instr& input, const Instr& value) {
    int maker = draft_.HomeOf(value);
    if (maker == group_) return;
    if (MayBeInside(value)) {
      if (!draft_.IsNeeded(value) && IsFirstReader(value)) AddVertical(value, maker);
      AddAgain(input, value);
      if (IsFirstReader(value)) AddDissolve(value);
    }
    if (&input == &value && !draft_.IsNeeded(value) && IsFirstReader(value)) AddLater(value, maker);
    AddMerge("fusion.merge", input, maker);
  }

  // Less is stored, and nothing is computed twice: all who read a value compute the same of it.
  void AddLater(const Instr& value, int maker) {
    const Instr* later = SmallestBehind(value);
    if (later == nullptr) return;
    Change change{{maker}, {draft_.group(maker)}};
    std::vector<const Instr*>& made = change.added[0].roots;
    std::erase(made, &value);
    made.push_back(later);
    InOrder(made);
    auto add = [&](const std::vector<int>& groups) {
      for (int group : groups) {
        if (std::find(change.removed.begin(), change.removed.end(), group) != change.removed.end())
          continue;
        change.removed.push_back(group);
        change.added.push_back(draft_.group(group));
      }
    };
    add(draft_.ReadersOf(value));
    add(draft_.ComputedIn(*later));
    Add("fusion.later", value, *later, std::move(change));
  }

  // What all readers of a value compute of it, and need nothing else of it for; null: nothing that
  // is smaller than the value.
  const Instr* SmallestBehind(const Instr& value) const {
    std::vector<const Instr*> necks;
    const std::vector<int>& readers = draft_.ReadersOf(value);
    for (size_t i = 0; i < readers.size() && (i == 0 || !necks.empty()); ++i) {
      std::vector<const Instr*> own = NecksBehind(draft_.region(readers[i]), value);
      if (i == 0) {
        necks = std::move(own);
      } else {
        std::erase_if(necks, [&](const Instr* neck) { return !IsMoved(own, neck); });
      }
    }
    const Instr* smallest = &value;
    for (const Instr* neck : necks)
      if (MayBeRoot(*neck) && neck->shape().IsArray() && MayBeInside(*neck) &&
          draft_.HomeOf(*neck) < 0 && BytesOfParts(*neck) < BytesOfParts(*smallest))
        smallest = neck;
    return smallest == &value ? nullptr : smallest;
  }

  void InOrder(std::vector<const Instr*>& roots) const {
    std::sort(roots.begin(), roots.end(), [&](const Instr* x, const Instr* y) {
      return draft_.PlaceOf(*x) < draft_.PlaceOf(*y);
    });
  }

  void AddAgain(const Instr& input, const Instr& value) {
    if (!draft_.IsNeeded(value) && draft_.ReadersOf(value).size() < 2) return;
    Group again = Own();
    ComputeAgain(again, input);
    Add("fusion.again", value, *OwnRoot(), Single({group_}, std::move(again)));
  }

  // An input is computed, down to what is stored.
  void ComputeAgain(Group& group, const Instr& input) const {
    for (const Instr* instr : draft_.ChainOf(input))
      if (!IsMoved(group.again, instr)) group.again.push_back(instr);
  }

  // What concerns all readers of a value is looked at once.
  bool IsFirstReader(const Instr& value) const {
    const std::vector<int>& readers = draft_.ReadersOf(value);
    return !readers.empty() && readers.size() <= kMaxReaders && readers[0] == group_;
  }

  // One group in place of some.
  static Change Single(std::vector<int> removed, Group added) {
    Change change{std::move(removed), {}};
    change.added.push_back(std::move(added));
    return change;
  }

  void AddVertical(const Instr& value, int maker) {
    const std::vector<int>& readers = draft_.ReadersOf(value);
    Change change;
    change.removed.reserve(1 + readers.size());
    change.added.reserve(1 + readers.size());
    change.removed.push_back(maker);
    Group rest = draft_.group(maker);
    std::erase(rest.roots, &value);
    if (!rest.roots.empty()) change.added.push_back(std::move(rest));
    for (int reader : readers) {
      change.removed.push_back(reader);
      change.added.push_back(draft_.group(reader));
    }
    Add("fusion.vertical", value, *OwnRoot(), std::move(change));
  }

  // Of what is needed as an array, a kernel remains.
  void AddDissolve(const Instr& value) {
    int maker = draft_.HomeOf(value);
    const std::vector<const Instr*>& made = draft_.group(maker).roots;
    if (made.size() < 2 || made[0] != &value) return;
    Change change{{maker}, {}};
    Group kept{{}, draft_.group(maker).again};
    for (const Instr* root : made) {
      if (!MayBeInside(*root)) return;
      if (draft_.IsNeeded(*root)) kept.roots.push_back(root);
      for (int reader : draft_.ReadersOf(*root)) {
        if (std::find(change.removed.begin(), change.removed.end(), reader) == change.removed.end())
          change.removed.push_back(reader);
      }
    }
    if (change.removed.size() > 1 + kMaxReaders) return;
    for (size_t i = 1; i < change.removed.size(); ++i)
      change.added.push_back(WithAgain(change.removed[i], kept.roots));
    if (!kept.roots.empty()) change.added.push_back(std::move(kept));
    Add("fusion.dissolve", value, *OwnRoot(), std::move(change));
  }

  // The group, computing these values again where it reads them.
  Group WithAgain(int group, const std::vector<const Instr*>& values) const {
    Group with = draft_.group(group);
    for (const Instr* input : draft_.region(group).inputs) {
      const Instr* stored = draft_.StoredBehind(*input);
      if (stored != nullptr && IsMoved(values, stored)) ComputeAgain(with, *input);
    }
    return with;
  }

  // Both as one: what one reads of the other it computes, also under another shape.
  void AddMerge(std::string_view rule, const Instr& input, int with) {
    const Group& other = draft_.group(with);
    Group both{{}, Own().again};
    both.roots.reserve(Own().roots.size() + other.roots.size());
    both.roots = Own().roots;
    both.roots.insert(both.roots.end(), other.roots.begin(), other.roots.end());
    InOrder(both.roots);
    DropUnread(both, with);
    for (const Instr* instr : other.again)
      if (!IsMoved(both.again, instr)) both.again.push_back(instr);
    for (int side : {group_, with})
      for (const Instr* read : draft_.region(side).inputs) {
        const Instr* stored = draft_.StoredBehind(*read);
        if (stored != nullptr && stored != read && IsMoved(both.roots, stored))
          ComputeAgain(both, *read);
      }
    Add(rule, input, *other.roots[0], Single({group_, with}, std::move(both)));
  }

  // What nobody but the two needs is stored no more, as long as something is.
  void DropUnread(Group& both, int with) const {
    auto is_unread = [&](const Instr* root) {
      if (draft_.IsNeeded(*root) || !MayBeInside(*root) || !root->shape().IsArray()) return false;
      const std::vector<int>& readers = draft_.ReadersOf(*root);
      return std::all_of(readers.begin(), readers.end(),
                         [&](int reader) { return reader == group_ || reader == with; });
    };
    if (!std::all_of(both.roots.begin(), both.roots.end(), is_unread))
      std::erase_if(both.roots, is_unread);
  }

  // Those that read a good part of the same bytes; what shares little is packed, not merged.
  void AddSiblings(Pairs pairs) {
    std::map<int, int64_t> shared;  // bytes, by group
    std::map<int, const Instr*> over;
    for (const Instr* input : draft_.region(group_).inputs)
      if (draft_.ReadersOf(*input).size() <= kMaxReaders)
        for (int reader : draft_.ReadersOf(*input)) {
          // The earlier one has its turn with the later one.
          if (reader == group_ || (pairs == Pairs::kLater && reader < group_)) continue;
          shared[reader] += BytesOfParts(*input);
          over.emplace(reader, input);
        }
    int64_t own = BytesOfInputs(group_);
    for (auto [other, bytes] : shared)
      if (bytes * kLeastShared >= std::min(own, BytesOfInputs(other)))
        AddMerge("fusion.sibling", *over[other], other);
  }

  int64_t BytesOfInputs(int group) const {
    int64_t bytes = 0;
    for (const Instr* input : draft_.region(group).inputs) bytes += BytesOfParts(*input);
    return bytes;
  }

  void AddSplits() {
    if (Own().roots.size() < 2) return;
    for (const Instr* root : Own().roots) {
      Group rest = Own(), alone{{root}, Own().again};
      std::erase(rest.roots, root);
      const Instr& other = *rest.roots[0];
      Add("fusion.split", *root, other, {{group_}, {std::move(rest), std::move(alone)}});
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

std::vector<Move> MovesOfValue(const Draft& draft, const Instr& value) {
  return MoveMaker(draft, draft.HomeOf(value)).RunValue(value);
}

std::vector<Move> SideMovesOf(const Draft& draft, int group) {
  return MoveMaker(draft, group).RunSides();
}

}  // namespace tokamak
