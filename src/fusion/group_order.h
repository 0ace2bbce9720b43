#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "gen/region.h"
#include "ir/ir.h"

namespace tokamak {

class CandidatePlan;

// A topological order of the groups of a candidate plan and of the instructions outside kernels,
// maintained incrementally. Each node has a rank: a node with a lower rank comes earlier. A
// position is not a rank: it is the index of an instruction in CandidatePlan::order()
// (CandidatePlan::PositionOf).
//
// Two groups may become one only if no path leads from one to the other through a third node. Such
// a path only visits nodes whose ranks lie between those of the two, so a merge is checked without
// walking the whole program.
class GroupOrder {
 public:
  // Whether a path leads from one of the two groups to the other through a third node. A direct
  // edge between the two does not count. Conservative: returns true if the walk visits more than
  // 2000 nodes (kOrderMaxVisited), which bounds planning time.
  bool HasIndirectPath(const CandidatePlan& candidate, int x, int y);
  // Whether everything on which `region` depends has a lower rank than `group`. If so, the region
  // may replace that group without a cycle.
  bool DependenciesRankBefore(const CandidatePlan& candidate, const FusedRegion& region, int group);
  // Gives group `replacement` the rank of the group `replaced`.
  void Replace(int replaced, int replacement);
  // Ranks group `replacement`, which will replace x and y. Requires that no path leads from one to
  // the other through a third node. Call it before CandidatePlan removes x and y.
  void Merge(const CandidatePlan& candidate, int x, int y, int replacement);
  // Discards the order; the next query recomputes it.
  void Invalidate() { is_valid_ = false; }

 private:
  // A group number, or ~position of an instruction outside kernels, which is negative.
  using Node = int64_t;
  enum class Direction : uint8_t { kUsers, kDependencies };

  // Ranks all nodes from scratch.
  void ComputeRanks(const CandidatePlan& candidate);
  // Ranks a node after everything on which it depends; `next_rank` is the first unused rank.
  void RankAfterDependencies(const CandidatePlan& candidate, Node node, int64_t& next_rank);
  int64_t& RankOf(Node node) {
    return node >= 0 ? group_ranks_[static_cast<size_t>(node)]
                     : outside_ranks_[static_cast<size_t>(~node)];
  }
  void SetGroupRank(int group, int64_t rank);
  // Collects all nodes reachable from a group with ranks strictly between `low` and `high`. Returns
  // false if there are more than kOrderMaxVisited.
  bool CollectReachable(const CandidatePlan& candidate, int from, Direction direction, int64_t low,
                        int64_t high, std::vector<Node>& found);
  // The id of the last walk in this direction that visited the node.
  uint32_t& LastVisitOf(Node node, Direction direction);
  // Calls f for each neighbour that this walk has not visited.
  template <typename F>
  void VisitNeighbours(const CandidatePlan& candidate, Node node, Direction direction, F&& f);

  bool is_valid_ = false;
  // The plan that was ranked has a cycle. Then no order exists, and queries answer conservatively:
  // there is a path, and no region may replace a group.
  bool is_cyclic_ = false;
  // By group, and by position of the instruction outside kernels.
  std::vector<int64_t> group_ranks_, outside_ranks_;
  struct LastVisits {
    std::vector<uint32_t> groups, outside_kernels;  // walk ids, by group and by position
  };
  std::array<LastVisits, 2> last_visits_;   // by direction
  std::array<std::vector<Node>, 2> found_;  // by direction: nodes of the last query, scratch
  uint32_t walk_id_ = 0;
};

}  // namespace tokamak
