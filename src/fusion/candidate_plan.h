#pragma once

// A candidate plan is one way to partition a computation into kernels; the planner improves it by
// moves (moves.h) and keeps the cheapest. It is defined by two facts: which values are stored in
// memory, and which stored values (roots) the same kernel computes: a fusion group. Everything else
// follows. The region of a group is all that its roots need, back to the values that other groups
// store, so unstored values are recomputed in every region that needs them.
//
//     a = exp(x)          groups {b, c}:    kernel 1 computes a, b, c;  stores b, c
//     b = a * 2           groups {b}, {c}:  kernel 1 computes a, b;  kernel 2 computes a, c
//     c = a + y           groups {a}, {b}, {c}:  three kernels; kernels 2 and 3 load a
//
// A third fact is rare: `recomputed` lists values that are stored for other groups but that this
// group computes itself, because that is cheaper than loading them.
//
// A Change replaces some groups by others. Try() returns the regions that a change would produce,
// so the planner can estimate their cost before Apply() makes it.

#include <span>
#include <vector>

#include "fusion/group_order.h"
#include "fusion/plan.h"
#include "fusion/region_hash.h"
#include "ir/ir.h"

namespace tokamak {

class Pins;

// The values that one kernel computes and stores.
struct FusionGroup {
  std::vector<const Instr*> roots;       // in CandidatePlan::order()
  std::vector<const Instr*> recomputed;  // stored by another group, but computed here
};

// The difference between two candidate plans. `removed` holds group numbers.
struct Change {
  std::vector<int> removed;
  std::vector<FusionGroup> added;
};

// A candidate plan with the indices that moves need: consumers of a value, regions and their
// hashes, and an execution order of the groups.
class CandidatePlan {
 public:
  // Starts from a complete plan. The hasher must outlive the candidate.
  CandidatePlan(const ComputationPlan& plan, FusedRegionHasher& hasher);
  // Starts with one group per instruction that computes something. Data movement (broadcast, slice,
  // reshape, ...) is recomputed in its consumers. With `contract`, so is an elementwise value whose
  // only consumer is elementwise of the same shape: that always saves a store and a load and adds
  // no work.
  CandidatePlan(const Computation& computation, const Machine& machine, bool contract,
                FusedRegionHasher& hasher);

  const Computation& computation() const { return *order_.back()->parent(); }

  const std::vector<Instr*>& order() const { return order_; }
  size_t PositionOf(const Instr& instr) const { return positions_[&instr]; }
  // Groups are numbered from 0 to size() - 1. Numbers are not reused: a removed group keeps its
  // number and has an empty region.
  size_t size() const { return groups_.size(); }
  const FusionGroup& group(int i) const { return groups_[static_cast<size_t>(i)].group; }
  const FusedRegion& region(int i) const { return groups_[static_cast<size_t>(i)].region; }
  uint64_t HashOf(int i) const { return groups_[static_cast<size_t>(i)].key.hash; }
  // The inputs, then the roots of the group, in a canonical order (FusedRegionKey::interface).
  const std::vector<const Instr*>& InterfaceOf(int i) const {
    return groups_[static_cast<size_t>(i)].key.interface;
  }
  bool IsLive(int i) const { return !region(i).roots.empty(); }
  // The group that stores the value; -1 if none does: consumers recompute it, or it is outside
  // kernels.
  int GroupOf(const Instr& value) const { return Of(value).group_number; }
  // No kernel stores or computes the value: a parameter, control flow, a library call, a host step
  // or an alias of another value.
  bool IsOutsideKernels(const Instr& value) const { return Of(value).outside_kernels; }
  // The groups that read the value or update part of it in place.
  const std::vector<int>& ConsumersOf(const Instr& value) const { return consumers_[&value]; }
  // The groups whose regions compute the value, whether they store it or not.
  const std::vector<int>& ComputedIn(const Instr& value) const { return computed_[&value]; }
  // The value must be in memory: it is the result, a control predecessor, an operand of something
  // outside kernels, or updated in place.
  bool IsNeeded(const Instr& value) const { return Of(value).needed; }
  // An input may alias a stored value (the same bytes with another shape). Returns the aliases from
  // the input back to the stored value, which comes last. Empty if no group stores it.
  std::vector<const Instr*> AliasChainOf(const Instr& input) const;
  // The stored value that the input aliases; null if no group stores it.
  const Instr* StoredValueOf(const Instr& input) const;

  // The user's fusion constraints, which moves must respect; may be null.
  void set_pins(const Pins* pins) { pins_ = pins; }
  const Pins* pins() const { return pins_; }
  // Hash of any region of this computation (region_hash.h).
  uint64_t HashOf(const FusedRegion& region) const { return hasher_->Of(region); }
  std::vector<FusedRegionKey> KeysOf(const std::vector<FusedRegion>& regions) const;
  // The canonical number of an instruction in a group's region (FusedRegionKey::numbers).
  uint32_t NumberIn(int i, const Instr& instr) const;

  // The regions of the added groups after the change. The plan itself is unchanged on return.
  std::vector<FusedRegion> Try(const Change& change);
  // Writes them to the front of `regions`, whose memory is reused; it may have more entries.
  void Try(const Change& change, std::vector<FusedRegion>& regions);
  void Apply(const Change& change) { Apply(change, Try(change)); }
  // `regions`: the result of Try() for this change.
  void Apply(const Change& change, std::vector<FusedRegion> regions) {
    std::vector<FusedRegionKey> keys = KeysOf(regions);
    Apply(change, std::move(regions), std::move(keys));
  }
  void Apply(const Change& change, std::vector<FusedRegion> regions,
             std::vector<FusedRegionKey> keys);
  // Whether a change that was found earlier still applies: all removed groups are live, and every
  // consumer of a value that would no longer be stored is among them.
  bool IsCurrent(const Change& change) const;
  // Whether two groups become one that has roots of both.
  bool IsMerge(const Change& change) const;
  // Whether a merge would make a cycle; needs no region.
  bool HasPathBetween(const Change& merge) {
    return group_order_.HasPathBetween(*this, merge.removed[0], merge.removed[1]);
  }
  // Whether a group would depend on its own results after the change. Conservative: may return true
  // for a merge if too many groups lie between the two (group_order.h).
  bool MakesCycle(const Change& change, const std::vector<FusedRegion>& regions);

 private:
  // Per instruction, indexed by its position in order_.
  struct Value {
    int group_number = -1;
    uint32_t seen = 0;                   // the last walk that visited it
    uint32_t first_read = 0, reads = 0;  // its range in reads_
    bool outside_kernels = false, needed = false, immediate = false;
    bool is_part = false;  // a get-tuple-element
  };
  struct Entry {
    FusionGroup group;
    FusedRegion region;
    FusedRegionKey key;
  };

  CandidatePlan(const Computation& computation, FusedRegionHasher& hasher);
  // The roots of the initial groups.
  std::vector<const Instr*> FirstRoots(const Machine& machine, bool contract);
  bool NeedsArray(const Instr& value) const;
  void AddGroup(FusionGroup group, FusedRegion region, FusedRegionKey key);
  Value& Of(const Instr& instr) { return values_[positions_[&instr]]; }
  const Value& Of(const Instr& instr) const { return values_[positions_[&instr]]; }
  // Positions of its operands, except immediates and the array that an update writes into.
  std::span<const uint32_t> ReadsOf(const Value& value) const {
    return {reads_.data() + value.first_read, value.reads};
  }
  void FindRegion(const FusionGroup& group, int number, FusedRegion& region);
  // Assigns roots to groups as if the change had been applied; forward = false reverts that.
  void Reassign(const Change& change, bool forward);
  // Adds or removes a group from consumers_ and computed_.
  void Link(int number, bool add);
  // Removes the get-tuple-elements from found_ whose tuple another group computes: they are inputs.
  void ForgetParts();
  // Fills the region with the instructions that the last walk found, in order, and its inputs.
  void PutInOrder(const std::vector<const Instr*>& roots, FusedRegion& region);
  // Whether each added group only has roots of one removed group, a different one each.
  bool IsNarrowing(const Change& change) const;
  bool FindsCycle(const Change& change, const std::vector<FusedRegion>& regions) const;
  // Whether the group loads the value at a position instead of computing it.
  bool IsInput(uint32_t position, const FusionGroup& group, int number) const;

  const Pins* pins_ = nullptr;
  FusedRegionHasher* hasher_;
  std::vector<Instr*> order_;
  InstrMap<uint32_t> positions_;
  std::vector<Value> values_;
  std::vector<uint32_t> reads_;
  InstrMap<std::vector<int>> consumers_, computed_;
  std::vector<Entry> groups_;
  GroupOrder group_order_;
  uint32_t walk_ = 0;
  std::vector<uint32_t> found_;       // positions that the last walk visited
  std::vector<const Instr*> inputs_;  // of the last region, scratch
};

}  // namespace tokamak
