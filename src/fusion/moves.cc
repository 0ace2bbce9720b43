#include "fusion/moves.h"

#include <algorithm>
#include <map>

#include "fusion/chain_moves.h"
#include "fusion/instr_predicates.h"
#include "fusion/post_dominators.h"
#include "gen/element.h"

namespace tokamak {
namespace {

// Consumers of a value at most; values with more get no moves that change all consumers. Chosen:
// bounds the number of regions per move.
constexpr size_t kMaxConsumers = 16;
// Siblings share at least 1/kMinCommonBytesDivisor of the input bytes of the one that reads less.
// Chosen: kernels that share little may share a launch instead (horizontal.h).
constexpr int64_t kMinCommonBytesDivisor = 4;

// Whether other kernels can compute its elements inline.
bool MayBeInside(const Instr& value) {
  return !IsPartialUpdate(value) && value.op() != Op::kSort;
}

class MoveEnumerator {
 public:
  MoveEnumerator(const CandidatePlan& candidate, int group)
      : candidate_(candidate), group_(group) {}

  std::vector<Move> Run(ChainSlices& slices) {
    AddChainMoves(candidate_, group_, slices, moves_);
    for (const Instr* input : candidate_.region(group_).inputs) {
      if (const Instr* stored = candidate_.StoredValueOf(*input)) AddOfInput(*input, *stored);
    }
    AddLoads();
    AddSiblings(Pairs::kAfter);
    AddSplits();
    AddStores();
    return std::move(moves_);
  }

  std::vector<Move> RunValue(const Instr& value) {
    const std::vector<int>& consumers = candidate_.ConsumersOf(value);
    if (consumers.empty() || consumers.size() > kMaxConsumers) return {};
    int producer = candidate_.GroupOf(value);
    bool must_be_stored = candidate_.MustBeStored(value);
    group_ = consumers[0];
    moves_.reserve(1 + consumers.size());
    if (!must_be_stored && MayBeInside(value)) AddVertical(value, producer);
    if (!must_be_stored && consumers.size() < 2) return std::move(moves_);
    for (int consumer : consumers) {
      group_ = consumer;
      if (consumer != producer) AddMerge("fusion.merge", value, producer);
    }
    return std::move(moves_);
  }

  std::vector<Move> RunPairs() {
    for (const Instr* input : candidate_.region(group_).inputs) {
      const Instr* stored = candidate_.StoredValueOf(*input);
      if (stored == nullptr || candidate_.GroupOf(*stored) == group_) continue;
      if (MayBeInside(*stored)) {
        AddRecompute(*input, *stored);
        AddDissolve(*stored);
      }
      // The other merges are enumerated by RunValue.
      bool once = candidate_.ConsumersOf(*stored).size() < 2 && !candidate_.MustBeStored(*stored);
      if (stored != input || once) AddMerge("fusion.merge", *input, candidate_.GroupOf(*stored));
    }
    AddSiblings(Pairs::kAll);
    return std::move(moves_);
  }

 private:
  // Which pairs to enumerate: only those with a group of a higher number, or all.
  enum class Pairs : uint8_t { kAfter, kAll };

  const FusionGroup& Own() const { return candidate_.group(group_); }
  const Instr* OwnRoot() const { return Own().roots[0]; }

  void AddOfInput(const Instr& input, const Instr& value) {
    int producer = candidate_.GroupOf(value);
    if (producer == group_) return;
    if (MayBeInside(value)) {
      if (!candidate_.MustBeStored(value) && IsFirstConsumer(value)) AddVertical(value, producer);
      AddRecompute(input, value);
      if (IsFirstConsumer(value)) AddDissolve(value);
    }
    if (&input == &value && !candidate_.MustBeStored(value) && IsFirstConsumer(value))
      AddStoreNarrower(value, producer);
    AddMerge("fusion.merge", input, producer);
  }

  // Stores fewer bytes and computes nothing twice: all consumers compute the narrower value from
  // `value` anyway.
  void AddStoreNarrower(const Instr& value, int producer) {
    const Instr* narrower = SmallestPostDominator(value);
    if (narrower == nullptr) return;
    Change change{{producer}, {candidate_.group(producer)}};
    std::vector<const Instr*>& made = change.added[0].roots;
    std::erase(made, &value);
    made.push_back(narrower);
    InOrder(made);
    auto add = [&](const std::vector<int>& groups) {
      for (int group : groups) {
        if (std::find(change.removed.begin(), change.removed.end(), group) != change.removed.end())
          continue;
        change.removed.push_back(group);
        change.added.push_back(candidate_.group(group));
      }
    };
    add(candidate_.ConsumersOf(value));
    add(candidate_.ComputedIn(*narrower));
    Add("fusion.store-narrower", value, *narrower, std::move(change));
  }

  // The smallest value that all consumers compute from `value` and through which alone they depend
  // on it (a common post-dominator); null if none is smaller than `value`.
  const Instr* SmallestPostDominator(const Instr& value) const {
    std::vector<const Instr*> post_dominators;
    const std::vector<int>& consumers = candidate_.ConsumersOf(value);
    for (size_t i = 0; i < consumers.size() && (i == 0 || !post_dominators.empty()); ++i) {
      std::vector<const Instr*> own = PostDominatorsOf(candidate_.region(consumers[i]), value);
      if (i == 0) {
        post_dominators = std::move(own);
      } else {
        std::erase_if(post_dominators, [&](const Instr* post_dominator) {
          return !ContainsInstr(own, post_dominator);
        });
      }
    }
    const Instr* smallest = &value;
    for (const Instr* post_dominator : post_dominators)
      if (MayBeRoot(*post_dominator) && post_dominator->shape().IsArray() &&
          MayBeInside(*post_dominator) && candidate_.GroupOf(*post_dominator) < 0 &&
          ResultBytes(*post_dominator) < ResultBytes(*smallest))
        smallest = post_dominator;
    return smallest == &value ? nullptr : smallest;
  }

  void InOrder(std::vector<const Instr*>& roots) const {
    std::sort(roots.begin(), roots.end(), [&](const Instr* x, const Instr* y) {
      return candidate_.PositionOf(*x) < candidate_.PositionOf(*y);
    });
  }

  void AddRecompute(const Instr& input, const Instr& value) {
    if (!candidate_.MustBeStored(value) && candidate_.ConsumersOf(value).size() < 2) return;
    FusionGroup recomputed = Own();
    Recompute(recomputed, input);
    Add("fusion.recompute", value, *OwnRoot(), Single({group_}, std::move(recomputed)));
  }

  // Undoes AddRecompute.
  void AddLoads() {
    for (const Instr* value : Own().recomputed) {
      int producer = candidate_.GroupOf(*value);
      bool is_computed = std::ranges::count(candidate_.ComputedIn(*value), group_) > 0;
      if (producer < 0 || producer == group_ || !is_computed) continue;
      FusionGroup loads = Own();
      std::erase_if(loads.recomputed,
                    [&](const Instr* instr) { return candidate_.StoredValueOf(*instr) == value; });
      Add("fusion.load", *value, *OwnRoot(), Single({group_}, std::move(loads)));
    }
  }

  // The group computes an input itself, including the aliases back to the stored value.
  void Recompute(FusionGroup& group, const Instr& input) const {
    for (const Instr* instr : candidate_.AliasChainOf(input))
      if (!ContainsInstr(group.recomputed, instr)) group.recomputed.push_back(instr);
  }

  // Moves that affect all consumers of a value are enumerated once, at the first consumer.
  bool IsFirstConsumer(const Instr& value) const {
    const std::vector<int>& consumers = candidate_.ConsumersOf(value);
    return !consumers.empty() && consumers.size() <= kMaxConsumers && consumers[0] == group_;
  }

  // A change that replaces several groups by one.
  static Change Single(std::vector<int> removed, FusionGroup added) {
    Change change{std::move(removed), {}};
    change.added.push_back(std::move(added));
    return change;
  }

  void AddVertical(const Instr& value, int producer) {
    const std::vector<int>& consumers = candidate_.ConsumersOf(value);
    Change change;
    change.removed.reserve(1 + consumers.size());
    change.added.reserve(1 + consumers.size());
    change.removed.push_back(producer);
    FusionGroup rest = candidate_.group(producer);
    std::erase(rest.roots, &value);
    if (!rest.roots.empty()) change.added.push_back(std::move(rest));
    for (int consumer : consumers) {
      change.removed.push_back(consumer);
      change.added.push_back(candidate_.group(consumer));
    }
    Add("fusion.vertical", value, *OwnRoot(), std::move(change));
  }

  // Values that must be stored keep a kernel.
  void AddDissolve(const Instr& value) {
    int producer = candidate_.GroupOf(value);
    const std::vector<const Instr*>& made = candidate_.group(producer).roots;
    if (made.size() < 2 || made[0] != &value) return;
    Change change{{producer}, {}};
    FusionGroup kept{{}, candidate_.group(producer).recomputed};
    for (const Instr* root : made) {
      if (!MayBeInside(*root)) return;
      if (candidate_.MustBeStored(*root)) kept.roots.push_back(root);
      for (int consumer : candidate_.ConsumersOf(*root)) {
        if (std::find(change.removed.begin(), change.removed.end(), consumer) ==
            change.removed.end())
          change.removed.push_back(consumer);
      }
    }
    if (change.removed.size() > 1 + kMaxConsumers) return;
    for (size_t i = 1; i < change.removed.size(); ++i)
      change.added.push_back(WithRecomputed(change.removed[i], kept.roots));
    if (!kept.roots.empty()) change.added.push_back(std::move(kept));
    Add("fusion.dissolve", value, *OwnRoot(), std::move(change));
  }

  // The group, with those of these values recomputed that it reads.
  FusionGroup WithRecomputed(int group, const std::vector<const Instr*>& values) const {
    FusionGroup with = candidate_.group(group);
    for (const Instr* input : candidate_.region(group).inputs) {
      const Instr* stored = candidate_.StoredValueOf(*input);
      if (stored != nullptr && ContainsInstr(values, stored)) Recompute(with, *input);
    }
    return with;
  }

  // Both groups as one. Values that one group reads of the other, also through an alias, become
  // internal.
  void AddMerge(std::string_view rule, const Instr& input, int with) {
    const FusionGroup& other = candidate_.group(with);
    FusionGroup both{{}, Own().recomputed};
    both.roots.reserve(Own().roots.size() + other.roots.size());
    both.roots = Own().roots;
    both.roots.insert(both.roots.end(), other.roots.begin(), other.roots.end());
    InOrder(both.roots);
    DropUnread(both, with);
    for (const Instr* instr : other.recomputed)
      if (!ContainsInstr(both.recomputed, instr)) both.recomputed.push_back(instr);
    for (int side : {group_, with})
      for (const Instr* read : candidate_.region(side).inputs) {
        const Instr* stored = candidate_.StoredValueOf(*read);
        if (stored != nullptr && stored != read && ContainsInstr(both.roots, stored))
          Recompute(both, *read);
      }
    Add(rule, input, *other.roots[0], Single({group_, with}, std::move(both)));
  }

  // Values that only these two groups read are no longer stored, unless nothing would be stored.
  void DropUnread(FusionGroup& both, int with) const {
    auto is_unread = [&](const Instr* root) {
      if (candidate_.MustBeStored(*root) || !MayBeInside(*root) || !root->shape().IsArray())
        return false;
      const std::vector<int>& consumers = candidate_.ConsumersOf(*root);
      return std::all_of(consumers.begin(), consumers.end(),
                         [&](int consumer) { return consumer == group_ || consumer == with; });
    };
    if (!std::all_of(both.roots.begin(), both.roots.end(), is_unread))
      std::erase_if(both.roots, is_unread);
  }

  // Groups that read many of the same bytes. Groups that share few are fused horizontally instead.
  void AddSiblings(Pairs pairs) {
    std::map<int, int64_t> shared;  // bytes in common, by group
    std::map<int, const Instr*> over;
    for (const Instr* input : candidate_.region(group_).inputs)
      if (candidate_.ConsumersOf(*input).size() <= kMaxConsumers)
        for (int consumer : candidate_.ConsumersOf(*input)) {
          // The group with the lower number enumerates the pair.
          if (consumer == group_ || (pairs == Pairs::kAfter && consumer < group_)) continue;
          shared[consumer] += ResultBytes(*input);
          over.emplace(consumer, input);
        }
    int64_t own = BytesOfInputs(group_);
    for (auto [other, bytes] : shared)
      if (bytes * kMinCommonBytesDivisor >= std::min(own, BytesOfInputs(other)))
        AddMerge("fusion.sibling", *over[other], other);
  }

  int64_t BytesOfInputs(int group) const {
    int64_t bytes = 0;
    for (const Instr* input : candidate_.region(group).inputs) bytes += ResultBytes(*input);
    return bytes;
  }

  void AddSplits() {
    if (Own().roots.size() < 2) return;
    for (const Instr* root : Own().roots) {
      FusionGroup rest = Own(), alone{{root}, Own().recomputed};
      std::erase(rest.roots, root);
      const Instr& other = *rest.roots[0];
      Add("fusion.split", *root, other, {{group_}, {std::move(rest), std::move(alone)}});
    }
  }

  void AddStores() {
    const FusedRegion& region = candidate_.region(group_);
    bool has_dot = std::ranges::any_of(region.instrs,
                                       [](const Instr* instr) { return instr->op() == Op::kDot; });
    for (const Instr* instr : region.instrs) {
      // A dot can read a stored operand by bulk copies, which do not transpose.
      bool is_operand = has_dot && instr->op() == Op::kTranspose && !IsAlias(*instr);
      if ((!MayBeRoot(*instr) && !is_operand) || candidate_.GroupOf(*instr) >= 0) continue;
      // Storing is useful only for values that are evaluated repeatedly: several users, a
      // reduction, or a user that reads elements more than once.
      // Users may read it in another shape.
      const Instr* read = instr;
      while (read->users().size() == 1 && IsAlias(*read->users()[0])) read = read->users()[0];
      bool shared = is_operand || read->users().size() > 1 || instr->op() == Op::kReduce ||
                    instr->op() == Op::kDot ||
                    std::ranges::any_of(read->users(), [](const Instr* user) {
                      return user->op() == Op::kBroadcast || user->op() == Op::kDot ||
                             user->op() == Op::kReduceWindow;
                    });
      if (!shared) continue;
      Change change{{}, {FusionGroup{{instr}, {}}}};
      for (int other : candidate_.ComputedIn(*instr)) {
        change.removed.push_back(other);
        change.added.push_back(candidate_.group(other));
      }
      // Enumerated once, at the first group that computes it.
      if (change.removed[0] == group_) Add("fusion.store", *instr, *OwnRoot(), std::move(change));
    }
  }

  void Add(std::string_view rule, const Instr& subject, const Instr& other, Change change) {
    moves_.push_back({rule, &subject, &other, std::move(change)});
  }

  const CandidatePlan& candidate_;
  int group_;
  std::vector<Move> moves_;
};

}  // namespace

bool MayBeRoot(const Instr& instr) {
  bool moves = instr.info().Is(kDataMovement) || instr.op() == Op::kIota ||
               instr.op() == Op::kConstant || instr.op() == Op::kBroadcast ||
               instr.op() == Op::kGetTupleElement;
  return !moves && !IsAlias(instr);
}

std::vector<Move> MovesOf(const CandidatePlan& candidate, int group, ChainSlices& slices) {
  return MoveEnumerator(candidate, group).Run(slices);
}

std::vector<Move> MovesOfValue(const CandidatePlan& candidate, const Instr& value) {
  return MoveEnumerator(candidate, candidate.GroupOf(value)).RunValue(value);
}

std::vector<Move> PairMovesOf(const CandidatePlan& candidate, int group) {
  return MoveEnumerator(candidate, group).RunPairs();
}

}  // namespace tokamak
