#pragma once

// A candidate plan is one way to divide a computation into kernels; the planner improves it by
// moves (moves.h) and keeps the cheapest. Three facts define it: which values are stored in memory,
// how the stored values (roots) are grouped, and rarely an exception (see below). The roots of one
// fusion group are computed by one kernel.
//
// Everything else follows. The region of a group is all that its roots need, back to values that
// other groups store or that are outside kernels (plan.h). A value that no group stores is computed
// in every region that needs it.
//
//     a = exp(x)          groups {b, c}:    kernel 1 computes a, b, c;  stores b, c
//     b = a * 2           groups {b}, {c}:  kernel 1 computes a, b;  kernel 2 computes a, c
//     c = a + y           groups {a}, {b}, {c}:  three kernels; kernels 2 and 3 load a
//
// The exception is FusionGroup::recomputed. It lists values that another group stores but that this
// group computes itself, because that is cheaper than loading them.
//
// A Change replaces some groups by others. RegionsAfter() returns the regions that a change would
// produce, so that the planner can evaluate their cost; Apply() makes the change.

#include <span>
#include <vector>

#include "fusion/group_order.h"
#include "fusion/plan.h"
#include "fusion/region_hash.h"
#include "ir/ir.h"

namespace tokamak {

class FusionConstraints;

// The values that one kernel computes and stores.
struct FusionGroup {
  std::vector<const Instr*> roots;       // sorted by CandidatePlan::PositionOf
  std::vector<const Instr*> recomputed;  // stored by another group, but computed here
};

// The difference between two candidate plans: groups that are replaced, and their replacements. A
// Move (moves.h) is a Change with a name and a subject. `removed` holds group numbers.
struct Change {
  std::vector<int> removed;
  std::vector<FusionGroup> added;
};

// A candidate plan with the indices that moves need: consumers of a value, regions and their
// hashes, and an execution order of the groups. Not thread-safe, not even for reading: queries
// reuse scratch memory.
class CandidatePlan {
 public:
  // Starts from a complete plan. The hasher must outlive the candidate.
  CandidatePlan(const ComputationPlan& plan, FusedRegionHasher& hasher);
  // Starts with one group per instruction that a kernel can compute, except broadcasts, iotas,
  // slices and aliases (IsAlias): each consumer computes them. If such a value must be stored, it
  // gets a group, or is outside kernels if it is an alias. Other data movement, such as a transpose
  // or a gather, has a group.
  //
  // With `inline_single_use`, an elementwise value whose only consumer is elementwise of the same
  // shape is not stored either. Both have the same shape, so each element is still computed once,
  // and a store and a load are saved. Such values and their consumers form chains of at most 100
  // instructions (kMaxChainInstrs), 250 operations per element (kMaxChainOps) and 20 inputs
  // (kMaxChainInputs): half of the limits of a kernel (region_limits.h).
  CandidatePlan(const Computation& computation, const Machine& machine, bool inline_single_use,
                FusedRegionHasher& hasher);

  const Computation& computation() const { return *order_.back()->parent(); }

  // All instructions, operands before users (OrderFromRoot, instr_predicates.h).
  const std::vector<Instr*>& order() const { return order_; }
  // The index of an instruction in order().
  size_t PositionOf(const Instr& instr) const { return positions_[&instr]; }
  // Groups are numbered from 0 to size() - 1. Numbers are not reused: a removed group keeps its
  // number and has an empty region.
  size_t size() const { return groups_.size(); }
  const FusionGroup& group(int number) const { return groups_[static_cast<size_t>(number)].group; }
  const FusedRegion& region(int group) const { return groups_[static_cast<size_t>(group)].region; }
  // The structural hash of a group's region (region_hash.h).
  uint64_t GroupHash(int group) const { return groups_[static_cast<size_t>(group)].key.hash; }
  // The inputs, then the roots of the group, in a canonical order (FusedRegionKey::interface).
  const std::vector<const Instr*>& InterfaceOf(int group) const {
    return groups_[static_cast<size_t>(group)].key.interface;
  }
  bool IsLive(int group) const { return !region(group).roots.empty(); }
  // The group that stores the value; -1 if none does: each consumer computes it, or it is outside
  // kernels.
  int GroupOf(const Instr& value) const { return StateOf(value).group_number; }
  // No kernel stores or computes the value: a parameter, a constant in memory (IsMemoryConstant), a
  // tuple, control flow, a library call, a host step, or an alias that is not part of a region
  // (plan.h).
  bool IsOutsideKernels(const Instr& value) const { return StateOf(value).outside_kernels; }
  // The groups that read the value or update part of it in place.
  const std::vector<int>& ConsumersOf(const Instr& value) const { return consumers_[&value]; }
  // The groups whose regions compute the value, whether they store it or not.
  const std::vector<int>& ComputedIn(const Instr& value) const { return computed_[&value]; }
  // Whether every plan must store the value, because it needs memory in any case: it is the result
  // of the computation, an operand of an instruction outside kernels, or an array that is updated
  // in place. A control predecessor is stored too: lowering orders kernels, so it needs one to
  // order.
  bool MustBeStored(const Instr& value) const { return StateOf(value).must_be_stored; }
  // An input may alias a stored value (the same bytes with another shape). Returns the aliases from
  // the input back to the stored value, which comes last. Empty if no group stores it.
  std::vector<const Instr*> AliasChainOf(const Instr& input) const;
  // The stored value that the input aliases; null if no group stores it.
  const Instr* StoredValueOf(const Instr& input) const;

  // The user's fusion constraints, which moves must respect; may be null.
  void set_constraints(const FusionConstraints* constraints) { constraints_ = constraints; }
  const FusionConstraints* constraints() const { return constraints_; }
  // The structural hash of any region of this computation.
  uint64_t RegionHash(const FusedRegion& region) const { return hasher_->HashOf(region); }
  std::vector<FusedRegionKey> KeysOf(const std::vector<FusedRegion>& regions) const;
  // The canonical number of an instruction in a group's region (FusedRegionKey::numbers).
  uint32_t CanonicalNumberIn(int group, const Instr& instr) const;

  // The regions that the added groups would have after the change. Reassigns roots while it runs
  // and restores them before it returns, so it is not const.
  std::vector<FusedRegion> RegionsAfter(const Change& change);
  // The same, into regions[0, change.added.size()), whose memory is reused. Grows `regions` if
  // necessary but never shrinks it; further entries are stale.
  void RegionsAfter(const Change& change, std::vector<FusedRegion>& regions);
  void Apply(const Change& change) { Apply(change, RegionsAfter(change)); }
  // `regions`: the result of RegionsAfter() for this change; `keys`: that of KeysOf(regions).
  void Apply(const Change& change, std::vector<FusedRegion> regions) {
    std::vector<FusedRegionKey> keys = KeysOf(regions);
    Apply(change, std::move(regions), std::move(keys));
  }
  void Apply(const Change& change, std::vector<FusedRegion> regions,
             std::vector<FusedRegionKey> keys);
  // Whether a change that was found earlier still applies: all removed groups are live, and every
  // consumer of a value that would no longer be stored is among them.
  bool IsStillApplicable(const Change& change) const;

  // Whether a group would depend on its own results after the change. Works for every change.
  // Conservative: may return true for a merge if too many groups lie between the two
  // (group_order.h).
  bool MakesCycle(const Change& change, const std::vector<FusedRegion>& regions);
  // Whether two groups become one that has roots of both.
  bool IsMerge(const Change& change) const;
  // Like MakesCycle, but needs no regions. Requires IsMerge(merge). Only a path through a third
  // node makes a cycle; a direct edge becomes internal.
  bool MergeMakesCycle(const Change& merge) {
    return group_order_.HasIndirectPath(*this, merge.removed[0], merge.removed[1]);
  }

 private:
  // What the plan knows about an instruction; indexed by its position in order_.
  struct InstrState {
    int group_number = -1;                      // as GroupOf
    uint32_t last_walk = 0;                     // id of the last walk that visited it
    uint32_t reads_begin = 0, reads_count = 0;  // its range in reads_
    bool outside_kernels = false, must_be_stored = false;
    bool is_immediate = false;  // a constant that is embedded in the code of kernels
    bool is_get_tuple_element = false;
  };
  struct Entry {
    FusionGroup group;
    FusedRegion region;
    FusedRegionKey key;
  };

  CandidatePlan(const Computation& computation, FusedRegionHasher& hasher);
  // The roots of the initial groups. Also sets outside_kernels and must_be_stored.
  std::vector<const Instr*> InitialRoots(const Machine& machine, bool inline_single_use);
  // Computes InstrState::must_be_stored. Requires outside_kernels of all users.
  bool ComputeMustBeStored(const Instr& value) const;
  void AddGroup(FusionGroup group, FusedRegion region, FusedRegionKey key);
  InstrState& StateOf(const Instr& instr) { return states_[positions_[&instr]]; }
  const InstrState& StateOf(const Instr& instr) const { return states_[positions_[&instr]]; }
  // Positions of its operands, except immediates and the array that a partial update writes
  // into.
  std::span<const uint32_t> ReadsOf(const InstrState& state) const {
    return {reads_.data() + state.reads_begin, state.reads_count};
  }
  // Computes the region of a group; `number` is that of the group, which need not exist yet.
  void FindRegion(const FusionGroup& group, int number, FusedRegion& region);
  void SetGroupOfRoots(const FusionGroup& group, int number);
  // Sets InstrState::group_number as if the change had been applied, and undoes that.
  void AssignRoots(const Change& change);
  void RevertRoots(const Change& change);
  // Adds a group to consumers_ and computed_, or removes it.
  void UpdateConsumerIndex(int group, bool add);
  // Removes from visited_ each get-tuple-element whose tuple another group computes: it is an input
  // of the region.
  void DropForeignTupleElements();
  // Fills in the region from the instructions that the last walk visited.
  void FillRegion(const std::vector<const Instr*>& roots, FusedRegion& region);
  // Whether groups only lose roots: each added group has roots of one removed group only, a
  // different one each. Such a change makes a cycle only through FusionGroup::recomputed.
  bool OnlyShrinksGroups(const Change& change) const;
  // MakesCycle for an arbitrary change; visits all transitive consumers of the new groups.
  bool MakesCycleByFullWalk(const Change& change, const std::vector<FusedRegion>& regions) const;
  // Whether the group loads the value at a position instead of computing it. `number` is that of
  // the group, which need not exist yet.
  bool IsInput(uint32_t position, const FusionGroup& group, int number) const;

  const FusionConstraints* constraints_ = nullptr;
  FusedRegionHasher* hasher_;
  std::vector<Instr*> order_;
  InstrMap<uint32_t> positions_;
  std::vector<InstrState> states_;
  std::vector<uint32_t> reads_;  // see ReadsOf
  InstrMap<std::vector<int>> consumers_, computed_;
  std::vector<Entry> groups_;
  GroupOrder group_order_;
  uint32_t walk_id_ = 0;
  std::vector<uint32_t> visited_;     // positions that the last walk visited
  std::vector<const Instr*> inputs_;  // of the last region, scratch
};

}  // namespace tokamak
