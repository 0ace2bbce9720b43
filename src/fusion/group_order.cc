#include "fusion/group_order.h"

#include <algorithm>

#include "fusion/draft.h"
#include "fusion/values.h"

namespace tokamak {
namespace {

// Groups that one question may look at.
constexpr size_t kOrderMaxVisited = 2000;

using Node = int64_t;
constexpr Node kNone = INT64_MAX;

// Whether a value is a part of what a kernel makes, and is read where that lies.
bool IsPartOfMade(const Draft& draft, const Instr& value) {
  return value.op() == Op::kGetTupleElement && draft.HomeOf(value) < 0 && !draft.IsOutside(value);
}

Node NodeOf(const Draft& draft, const Instr& value) {
  if (int home = draft.HomeOf(value); home >= 0) return home;
  if (IsPartOfMade(draft, value)) return NodeOf(draft, *value.operand(0));
  return draft.IsOutside(value) ? ~static_cast<Node>(draft.PlaceOf(value)) : kNone;
}

// Calls f for each node, but for `own`, that must have run before a region.
template <typename F>
void ForNeedsOf(const Draft& draft, const Region& region, Node own, F&& f) {
  auto add = [&](const Instr* value) {
    if (Node needed = NodeOf(draft, *value); needed != kNone && needed != own) f(needed);
  };
  for (const Instr* input : region.inputs) add(input);
  for (const Instr* root : region.roots)
    if (IsUpdate(*root)) add(root->operand(0));
}

// The same for a node.
template <typename F>
void ForNeeds(const Draft& draft, Node node, F&& f) {
  if (node >= 0) return ForNeedsOf(draft, draft.region(static_cast<int>(node)), node, f);
  for (const Instr* operand : draft.order()[static_cast<size_t>(~node)]->operands())
    if (Node needed = NodeOf(draft, *operand); needed != kNone) f(needed);
}

template <typename F>
void ForUsersOf(const Draft& draft, const Instr& value, Node node, F&& f) {
  for (int reader : draft.ReadersOf(value))
    if (reader != node) f(Node{reader});
  for (const Instr* user : value.users()) {
    if (draft.IsOutside(*user)) f(~static_cast<Node>(draft.PlaceOf(*user)));
    if (IsPartOfMade(draft, *user)) ForUsersOf(draft, *user, node, f);
  }
}

// Calls f for each node that must run after this one.
template <typename F>
void ForUsers(const Draft& draft, Node node, F&& f) {
  if (node < 0) return ForUsersOf(draft, *draft.order()[static_cast<size_t>(~node)], node, f);
  for (const Instr* root : draft.region(static_cast<int>(node)).roots)
    ForUsersOf(draft, *root, node, f);
}

}  // namespace

void GroupOrder::Find(const Draft& draft) {
  is_known_ = true;
  is_cyclic_ = false;
  groups_.assign(draft.size(), -1);
  outside_.assign(draft.order().size(), -1);
  int64_t next = 0;
  for (const Instr* instr : draft.order())
    if (Node node = NodeOf(draft, *instr); node != kNone && RankOf(node) < 0)
      Visit(draft, node, next);
}

// Gives ranks to a node and, before it, to all that it needs.
void GroupOrder::Visit(const Draft& draft, Node first, int64_t& next) {
  constexpr int64_t kOpen = -2;
  std::vector<Node> open = {first};
  while (!open.empty()) {
    Node node = open.back();
    if (RankOf(node) == kOpen || RankOf(node) >= 0) {
      if (RankOf(node) == kOpen) RankOf(node) = next++;
      open.pop_back();
      continue;
    }
    RankOf(node) = kOpen;
    ForNeeds(draft, node, [&](Node needed) {
      if (RankOf(needed) == -1) open.push_back(needed);
      // That one waits for this one.
      is_cyclic_ = is_cyclic_ || RankOf(needed) == kOpen;
    });
  }
}

void GroupOrder::SetGroup(int group, int64_t rank) {
  if (static_cast<size_t>(group) >= groups_.size())
    groups_.resize(static_cast<size_t>(group) + 1, -1);
  groups_[static_cast<size_t>(group)] = rank;
}

void GroupOrder::Replace(int old, int by) {
  if (is_known_) SetGroup(by, RankOf(old));
}

uint32_t& GroupOrder::SeenOf(Node node, Direction direction) {
  Seen& seen = seen_[static_cast<size_t>(direction)];
  std::vector<uint32_t>& list = node >= 0 ? seen.groups : seen.outside;
  auto at = static_cast<size_t>(node >= 0 ? node : ~node);
  if (at >= list.size()) list.resize(std::max(at + 1, 2 * list.size()), 0);
  return list[at];
}

template <typename F>
void GroupOrder::Spread(const Draft& draft, Node node, Direction direction, F&& f) {
  auto add = [&](Node next) {
    if (uint32_t& seen = SeenOf(next, direction); seen != walk_) {
      seen = walk_;
      f(next);
    }
  };
  direction == Direction::kUsers ? ForUsers(draft, node, add) : ForNeeds(draft, node, add);
}

bool GroupOrder::Reach(const Draft& draft, int from, Direction direction, int64_t low, int64_t high,
                       std::vector<Node>& found) {
  ++walk_;
  auto add = [&](Node node) {
    if (RankOf(node) > low && RankOf(node) < high) found.push_back(node);
  };
  Spread(draft, from, direction, add);
  for (size_t i = 0; i < found.size() && found.size() <= kOrderMaxVisited; ++i)
    Spread(draft, found[i], direction, add);
  return found.size() <= kOrderMaxVisited;
}

bool GroupOrder::Fits(const Draft& draft, const Region& region, int group) {
  if (!is_known_) Find(draft);
  bool fits = !is_cyclic_;
  ForNeedsOf(draft, region, group,
             [&](Node needed) { fits = fits && RankOf(needed) < RankOf(group); });
  return fits;
}

// From both sides in turn: where one of them ends, nothing lies between.
bool GroupOrder::LiesBetween(const Draft& draft, int x, int y) {
  if (!is_known_) Find(draft);
  if (is_cyclic_) return true;
  if (RankOf(x) > RankOf(y)) std::swap(x, y);
  int64_t low = RankOf(x), high = RankOf(y);
  ++walk_;
  struct Side {
    Direction direction, other;
    std::vector<Node>& found;
    size_t next = 0;
  };
  found_[0].assign(1, x);
  found_[1].assign(1, y);
  Side sides[] = {{Direction::kUsers, Direction::kNeeds, found_[0]},
                  {Direction::kNeeds, Direction::kUsers, found_[1]}};
  bool meet = false;
  for (int turn = 0; !meet; turn = 1 - turn) {
    Side& side = sides[turn];
    if (side.next == side.found.size()) return false;
    if (side.found.size() > kOrderMaxVisited) return true;
    Node from = side.found[side.next++];
    Spread(draft, from, side.direction, [&](Node node) {
      if (RankOf(node) <= low || RankOf(node) >= high) return;
      meet = meet || SeenOf(node, side.other) == walk_;
      side.found.push_back(node);
    });
  }
  return true;
}

// What the second needs comes first, what needs the first comes last, in the ranks that they all
// had.
void GroupOrder::Merge(const Draft& draft, int x, int y, int by) {
  if (!is_known_ || is_cyclic_) return;
  if (RankOf(x) > RankOf(y)) std::swap(x, y);
  int64_t low = RankOf(x), high = RankOf(y);
  std::vector<Node> after, before;
  if (!Reach(draft, x, Direction::kUsers, low, high, after) ||
      !Reach(draft, y, Direction::kNeeds, low, high, before))
    return Forget();
  auto sooner = [&](Node a, Node b) { return RankOf(a) < RankOf(b); };
  std::sort(after.begin(), after.end(), sooner);
  std::sort(before.begin(), before.end(), sooner);
  std::vector<int64_t> ranks = {low, high};
  for (const std::vector<Node>* nodes : {&before, &after})
    for (Node node : *nodes) ranks.push_back(RankOf(node));
  std::sort(ranks.begin(), ranks.end());
  size_t next = 0;
  for (Node node : before) RankOf(node) = ranks[next++];
  SetGroup(by, ranks[next++]);
  next = ranks.size() - after.size();
  for (Node node : after) RankOf(node) = ranks[next++];
}

}  // namespace tokamak
