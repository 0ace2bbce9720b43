#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "gen/region.h"
#include "ir/ir.h"

namespace tokamak {

class CandidatePlan;

// A topological order of the groups of a candidate plan and of the instructions outside kernels,
// maintained incrementally. Two groups may become one only if no path leads from one to the other
// through a third node. Such a path only visits nodes whose ranks lie between those of the two, so
// a merge is checked without walking the whole program.
class GroupOrder {
 public:
  // Whether a path connects two groups through another node. Conservative: returns true if the walk
  // exceeds its limit.
  bool HasPathBetween(const CandidatePlan& candidate, int x, int y);
  // Whether everything that a region needs ranks before the group that it would replace.
  bool Fits(const CandidatePlan& candidate, const FusedRegion& region, int group);
  // Group `by` takes the rank of the group `old` that it replaces.
  void Replace(int old, int by);
  // Group `by` will replace x and y, which have no path between them and are both still live.
  void Merge(const CandidatePlan& candidate, int x, int y, int by);
  // Discards the order; it is recomputed on the next query.
  void Forget() { is_known_ = false; }

 private:
  // A group number, or ~position of an instruction outside kernels.
  using Node = int64_t;
  enum class Direction : uint8_t { kUsers, kNeeds };

  void Find(const CandidatePlan& candidate);
  void Visit(const CandidatePlan& candidate, Node first, int64_t& next);
  int64_t& RankOf(Node node) {
    return node >= 0 ? groups_[static_cast<size_t>(node)] : outside_[static_cast<size_t>(~node)];
  }
  void SetGroup(int group, int64_t rank);
  // Collects all nodes reachable from a group with ranks strictly between `low` and `high`. Returns
  // false if there are too many.
  bool Reach(const CandidatePlan& candidate, int from, Direction direction, int64_t low,
             int64_t high, std::vector<Node>& found);
  uint32_t& SeenOf(Node node, Direction direction);
  // Calls f for each neighbour that this walk has not visited.
  template <typename F>
  void VisitNeighbours(const CandidatePlan& candidate, Node node, Direction direction, F&& f);

  bool is_known_ = false, is_cyclic_ = false;
  std::vector<int64_t> groups_, outside_;  // ranks, by group and by position
  struct Seen {
    std::vector<uint32_t> groups, outside_kernels;  // the last walk that visited it
  };
  std::array<Seen, 2> seen_;                // by direction
  std::array<std::vector<Node>, 2> found_;  // by direction: nodes of the last query, scratch
  uint32_t walk_ = 0;
};

}  // namespace tokamak
