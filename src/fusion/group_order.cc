#include "fusion/group_order.h"

#include <algorithm>

#include "fusion/candidate_plan.h"
#include "fusion/instr_predicates.h"

namespace tokamak {
namespace {

// Nodes that one query may visit. Chosen: bounds planning time.
constexpr size_t kOrderMaxVisited = 2000;

using Node = int64_t;
// Not a node: the value is recomputed in its consumers.
constexpr Node kNone = INT64_MAX;

// Whether a value is an element of a tuple that a kernel computes and is read from that buffer.
bool IsElementOfKernelTuple(const CandidatePlan& candidate, const Instr& value) {
  return value.op() == Op::kGetTupleElement && candidate.GroupOf(value) < 0 &&
         !candidate.IsOutsideKernels(value);
}

Node NodeOf(const CandidatePlan& candidate, const Instr& value) {
  if (int group_number = candidate.GroupOf(value); group_number >= 0) return group_number;
  if (IsElementOfKernelTuple(candidate, value)) return NodeOf(candidate, *value.operand(0));
  return candidate.IsOutsideKernels(value) ? ~static_cast<Node>(candidate.PositionOf(value))
                                           : kNone;
}

// Calls f for each node, except `own`, that must run before a region.
template <typename F>
void ForDependenciesOf(const CandidatePlan& candidate, const FusedRegion& region, Node own, F&& f) {
  auto add = [&](const Instr* value) {
    if (Node needed = NodeOf(candidate, *value); needed != kNone && needed != own) f(needed);
  };
  for (const Instr* input : region.inputs) add(input);
  for (const Instr* root : region.roots)
    if (IsPartialUpdate(*root)) add(root->operand(0));
}

// Calls f for each node that must run before this one.
template <typename F>
void ForDependencies(const CandidatePlan& candidate, Node node, F&& f) {
  if (node >= 0)
    return ForDependenciesOf(candidate, candidate.region(static_cast<int>(node)), node, f);
  for (const Instr* operand : candidate.order()[static_cast<size_t>(~node)]->operands())
    if (Node needed = NodeOf(candidate, *operand); needed != kNone) f(needed);
}

template <typename F>
void ForUsersOf(const CandidatePlan& candidate, const Instr& value, Node node, F&& f) {
  for (int consumer : candidate.ConsumersOf(value))
    if (consumer != node) f(Node{consumer});
  for (const Instr* user : value.users()) {
    if (candidate.IsOutsideKernels(*user)) f(~static_cast<Node>(candidate.PositionOf(*user)));
    if (IsElementOfKernelTuple(candidate, *user)) ForUsersOf(candidate, *user, node, f);
  }
}

// Calls f for each node that must run after this one.
template <typename F>
void ForUsers(const CandidatePlan& candidate, Node node, F&& f) {
  if (node < 0)
    return ForUsersOf(candidate, *candidate.order()[static_cast<size_t>(~node)], node, f);
  for (const Instr* root : candidate.region(static_cast<int>(node)).roots)
    ForUsersOf(candidate, *root, node, f);
}

}  // namespace

void GroupOrder::ComputeRanks(const CandidatePlan& candidate) {
  is_valid_ = true;
  is_cyclic_ = false;
  group_ranks_.assign(candidate.size(), -1);
  outside_ranks_.assign(candidate.order().size(), -1);
  int64_t next_rank = 0;
  for (const Instr* instr : candidate.order())
    if (Node node = NodeOf(candidate, *instr); node != kNone && RankOf(node) < 0)
      RankAfterDependencies(candidate, node, next_rank);
}

void GroupOrder::RankAfterDependencies(const CandidatePlan& candidate, Node first,
                                       int64_t& next_rank) {
  // Rank of a node on the stack; -1: not visited.
  constexpr int64_t kOpen = -2;
  std::vector<Node> open = {first};
  while (!open.empty()) {
    Node node = open.back();
    if (RankOf(node) == kOpen || RankOf(node) >= 0) {
      if (RankOf(node) == kOpen) RankOf(node) = next_rank++;
      open.pop_back();
      continue;
    }
    RankOf(node) = kOpen;
    ForDependencies(candidate, node, [&](Node needed) {
      if (RankOf(needed) == -1) open.push_back(needed);
      // It is an ancestor in this walk: a cycle.
      is_cyclic_ = is_cyclic_ || RankOf(needed) == kOpen;
    });
  }
}

void GroupOrder::SetGroupRank(int group, int64_t rank) {
  if (static_cast<size_t>(group) >= group_ranks_.size())
    group_ranks_.resize(static_cast<size_t>(group) + 1, -1);
  group_ranks_[static_cast<size_t>(group)] = rank;
}

void GroupOrder::Replace(int replaced, int replacement) {
  if (is_valid_) SetGroupRank(replacement, RankOf(replaced));
}

uint32_t& GroupOrder::LastVisitOf(Node node, Direction direction) {
  LastVisits& visits = last_visits_[static_cast<size_t>(direction)];
  std::vector<uint32_t>& list = node >= 0 ? visits.groups : visits.outside_kernels;
  auto at = static_cast<size_t>(node >= 0 ? node : ~node);
  if (at >= list.size()) list.resize(std::max(at + 1, 2 * list.size()), 0);
  return list[at];
}

template <typename F>
void GroupOrder::VisitNeighbours(const CandidatePlan& candidate, Node node, Direction direction,
                                 F&& f) {
  auto add = [&](Node next) {
    if (uint32_t& seen = LastVisitOf(next, direction); seen != walk_id_) {
      seen = walk_id_;
      f(next);
    }
  };
  direction == Direction::kUsers ? ForUsers(candidate, node, add)
                                 : ForDependencies(candidate, node, add);
}

bool GroupOrder::CollectReachable(const CandidatePlan& candidate, int from, Direction direction,
                                  int64_t low, int64_t high, std::vector<Node>& found) {
  ++walk_id_;
  auto add = [&](Node node) {
    if (RankOf(node) > low && RankOf(node) < high) found.push_back(node);
  };
  VisitNeighbours(candidate, from, direction, add);
  for (size_t i = 0; i < found.size() && found.size() <= kOrderMaxVisited; ++i)
    VisitNeighbours(candidate, found[i], direction, add);
  return found.size() <= kOrderMaxVisited;
}

bool GroupOrder::DependenciesRankBefore(const CandidatePlan& candidate, const FusedRegion& region,
                                        int group) {
  if (!is_valid_) ComputeRanks(candidate);
  bool fits = !is_cyclic_;
  ForDependenciesOf(candidate, region, group,
                    [&](Node needed) { fits = fits && RankOf(needed) < RankOf(group); });
  return fits;
}

// Bidirectional search, alternating between the sides. When either side is exhausted, there is no
// path.
bool GroupOrder::HasIndirectPath(const CandidatePlan& candidate, int x, int y) {
  if (!is_valid_) ComputeRanks(candidate);
  if (is_cyclic_) return true;
  if (RankOf(x) > RankOf(y)) std::swap(x, y);
  int64_t low = RankOf(x), high = RankOf(y);
  ++walk_id_;
  struct Side {
    Direction direction, other;
    std::vector<Node>& found;
    size_t next = 0;
  };
  found_[0].assign(1, x);
  found_[1].assign(1, y);
  Side sides[] = {{Direction::kUsers, Direction::kDependencies, found_[0]},
                  {Direction::kDependencies, Direction::kUsers, found_[1]}};
  bool meet = false;
  for (int turn = 0; !meet; turn = 1 - turn) {
    Side& side = sides[turn];
    if (side.next == side.found.size()) return false;
    if (side.found.size() > kOrderMaxVisited) return true;
    Node from = side.found[side.next++];
    VisitNeighbours(candidate, from, side.direction, [&](Node node) {
      if (RankOf(node) <= low || RankOf(node) >= high) return;
      meet = meet || LastVisitOf(node, side.other) == walk_id_;
      side.found.push_back(node);
    });
  }
  return true;
}

// Reorders the nodes between x and y within the ranks that they had: first what y needs, then the
// merged group, then what needs x.
void GroupOrder::Merge(const CandidatePlan& candidate, int x, int y, int replacement) {
  if (!is_valid_ || is_cyclic_) return;
  if (RankOf(x) > RankOf(y)) std::swap(x, y);
  int64_t low = RankOf(x), high = RankOf(y);
  std::vector<Node> after, before;
  if (!CollectReachable(candidate, x, Direction::kUsers, low, high, after) ||
      !CollectReachable(candidate, y, Direction::kDependencies, low, high, before))
    return Invalidate();
  auto sooner = [&](Node a, Node b) { return RankOf(a) < RankOf(b); };
  std::sort(after.begin(), after.end(), sooner);
  std::sort(before.begin(), before.end(), sooner);
  std::vector<int64_t> ranks = {low, high};
  for (const std::vector<Node>* nodes : {&before, &after})
    for (Node node : *nodes) ranks.push_back(RankOf(node));
  std::sort(ranks.begin(), ranks.end());
  size_t next = 0;
  for (Node node : before) RankOf(node) = ranks[next++];
  SetGroupRank(replacement, ranks[next++]);
  next = ranks.size() - after.size();
  for (Node node : after) RankOf(node) = ranks[next++];
}

}  // namespace tokamak
