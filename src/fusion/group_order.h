#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "gen/region.h"
#include "ir/ir.h"

namespace tokamak {

class Draft;

// An order in which the groups of a draft, and the instructions that are no kernel's, can run. It
// tells which pairs of groups can be one without a look at the whole program: what lies between
// them in the order is enough.
class GroupOrder {
 public:
  // Whether something else needs one of two groups, and is needed by the other. Says so, too, when
  // more lies in between than is looked at.
  bool LiesBetween(const Draft& draft, int x, int y);
  // Whether all that a region needs comes before a group, in whose place it is to be.
  bool Fits(const Draft& draft, const Region& region, int group);
  // A new group stands where another was, which it was made of.
  void Replace(int old, int by);
  // A new group will be made of two between which nothing lies; both are still there.
  void Merge(const Draft& draft, int x, int y, int by);
  // The order is to be found anew before it is used again.
  void Forget() { is_known_ = false; }

 private:
  // A group, by its number, or ~place of an instruction that is no kernel's.
  using Node = int64_t;
  enum class Direction : uint8_t { kUsers, kNeeds };

  void Find(const Draft& draft);
  void Visit(const Draft& draft, Node first, int64_t& next);
  int64_t& RankOf(Node node) {
    return node >= 0 ? groups_[static_cast<size_t>(node)] : outside_[static_cast<size_t>(~node)];
  }
  void SetGroup(int group, int64_t rank);
  // All that a group leads to with a rank between these two. False: too many.
  bool Reach(const Draft& draft, int from, Direction direction, int64_t low, int64_t high,
             std::vector<Node>& found);
  uint32_t& SeenOf(Node node, Direction direction);
  // Calls f for each neighbour that has not been seen in this walk.
  template <typename F>
  void Spread(const Draft& draft, Node node, Direction direction, F&& f);

  bool is_known_ = false, is_cyclic_ = false;
  std::vector<int64_t> groups_, outside_;  // ranks, by number and by place
  struct Seen {
    std::vector<uint32_t> groups, outside;  // in which walk
  };
  std::array<Seen, 2> seen_;                // by direction
  std::array<std::vector<Node>, 2> found_;  // the same, of the last question
  uint32_t walk_ = 0;
};

}  // namespace tokamak
