#pragma once

#include <span>
#include <vector>

#include "fusion/group_order.h"
#include "fusion/plan.h"
#include "fusion/region_hash.h"
#include "ir/ir.h"

namespace tokamak {

class Pins;

// Values that one kernel makes.
struct Group {
  std::vector<const Instr*> roots;  // in order
  std::vector<const Instr*> again;  // made by others, too, and computed here all the same
};

// A step from one draft to another: groups go, others come.
struct Change {
  std::vector<int> removed;
  std::vector<Group> added;
};

// A plan that is being made: which values are stored, which of them one kernel makes, and where a
// stored value is computed again. What a kernel computes follows from that: all that its roots
// need, back to what is stored.
class Draft {
 public:
  // Begins as a plan that is complete. The hasher must outlive the draft.
  Draft(const ComputationPlan& plan, RegionHasher& hasher);
  // Begins with a group for each instruction that computes; what only moves elements is computed
  // where it is needed, and so is, if `contract`, what one neighbour alone computes with, element
  // by element: a store and a load less, and nothing more to do.
  Draft(const Computation& computation, const Machine& machine, bool contract,
        RegionHasher& hasher);

  const Computation& computation() const { return *order_.back()->parent(); }

  const std::vector<Instr*>& order() const { return order_; }
  size_t PlaceOf(const Instr& instr) const { return places_[&instr]; }
  // Groups by number, up to size(); of one that is gone, the region has no roots.
  size_t size() const { return groups_.size(); }
  const Group& group(int i) const { return groups_[static_cast<size_t>(i)].group; }
  const Region& region(int i) const { return groups_[static_cast<size_t>(i)].region; }
  uint64_t HashOf(int i) const { return groups_[static_cast<size_t>(i)].key.hash; }
  // Its inputs and then its roots, in an order that follows from what it computes.
  const std::vector<const Instr*>& EndsOf(int i) const {
    return groups_[static_cast<size_t>(i)].key.ends;
  }
  bool IsThere(int i) const { return !region(i).roots.empty(); }
  // The group that makes a value; -1: none, it is computed where it is needed or no kernel's.
  int HomeOf(const Instr& value) const { return Of(value).home; }
  // No kernel makes it, or computes it inside: a parameter, control flow, a library's, an alias.
  bool IsOutside(const Instr& value) const { return Of(value).outside; }
  // The groups that need it: read it, or write a part of it.
  const std::vector<int>& ReadersOf(const Instr& value) const { return readers_[&value]; }
  // The groups that compute it, whether it is stored or not.
  const std::vector<int>& ComputedIn(const Instr& value) const { return computed_[&value]; }
  // Something that is no kernel needs it as an array.
  bool IsNeeded(const Instr& value) const { return Of(value).needed; }
  // What lies between an input of a group and the value that is stored, the value last: an input
  // may be the same bytes under another shape. Empty when no kernel makes it.
  std::vector<const Instr*> ChainOf(const Instr& input) const;
  // The last of them; null: none.
  const Instr* StoredBehind(const Instr& input) const;

  // What a user has said of it, which moves may not break; null: nothing.
  void set_pins(const Pins* pins) { pins_ = pins; }
  const Pins* pins() const { return pins_; }
  // The hash of any region of this computation.
  uint64_t HashOf(const Region& region) const { return hasher_->Of(region); }
  std::vector<RegionKey> KeysOf(const std::vector<Region>& regions) const;
  // Where an instruction stands in a group, in an order that follows from what it computes.
  uint32_t NumberIn(int i, const Instr& instr) const;

  // The regions that the groups added would be.
  std::vector<Region> Try(const Change& change);
  // The same into the first of `regions`, whose memory is used again.
  void Try(const Change& change, std::vector<Region>& regions);
  void Apply(const Change& change) { Apply(change, Try(change)); }
  // With the regions that the change was tried with.
  void Apply(const Change& change, std::vector<Region> regions) {
    std::vector<RegionKey> keys = KeysOf(regions);
    Apply(change, std::move(regions), std::move(keys));
  }
  void Apply(const Change& change, std::vector<Region> regions, std::vector<RegionKey> keys);
  // Whether it may still be made: all groups that it replaces are there, and so are, among them,
  // all that read what would no longer be stored.
  bool IsCurrent(const Change& change) const;
  // Two groups become one, which makes something of both.
  bool IsMerge(const Change& change) const;
  // Of a merge, without its region: whether it makes a cycle.
  bool LiesBetween(const Change& merge) {
    return group_order_.LiesBetween(*this, merge.removed[0], merge.removed[1]);
  }
  // Whether some group would need what it makes itself, after the change. Of two groups with very
  // much in between, this may say so although it is not so.
  bool MakesCycle(const Change& change, const std::vector<Region>& regions);

 private:
  // An instruction, by its place in the order.
  struct Value {
    int home = -1;
    uint32_t seen = 0;                   // in which walk
    uint32_t first_read = 0, reads = 0;  // where in reads_, how many
    bool outside = false, needed = false, immediate = false;
    bool is_part = false;  // of a tuple
  };
  struct Entry {
    Group group;
    Region region;
    RegionKey key;
  };

  Draft(const Computation& computation, RegionHasher& hasher);
  // Which instructions begin as groups.
  std::vector<const Instr*> FirstRoots(const Machine& machine, bool contract);
  bool NeedsArray(const Instr& value) const;
  void AddGroup(Group group, Region region, RegionKey key);
  Value& Of(const Instr& instr) { return values_[places_[&instr]]; }
  const Value& Of(const Instr& instr) const { return values_[places_[&instr]]; }
  // The places of its operands, but for immediate ones and for what an update is written into.
  std::span<const uint32_t> ReadsOf(const Value& value) const {
    return {reads_.data() + value.first_read, value.reads};
  }
  void FindRegion(const Group& group, int number, Region& region);
  // Marks roots as made by others, as if the change were made; again: takes it back.
  void Rehome(const Change& change, bool forward);
  void Link(int number, bool add);
  void ForgetParts();
  // What the last walk found, in order, with its inputs.
  void PutInOrder(const std::vector<const Instr*>& roots, Region& region);
  bool IsNarrowing(const Change& change) const;
  bool FindsCycle(const Change& change, const std::vector<Region>& regions) const;
  // Whether the group reads what stands at a place rather than computes it.
  bool IsInput(uint32_t place, const Group& group, int number) const;

  const Pins* pins_ = nullptr;
  RegionHasher* hasher_;
  std::vector<Instr*> order_;
  InstrMap<uint32_t> places_;
  std::vector<Value> values_;
  std::vector<uint32_t> reads_;
  InstrMap<std::vector<int>> readers_, computed_;
  std::vector<Entry> groups_;
  GroupOrder group_order_;
  uint32_t walk_ = 0;
  std::vector<uint32_t> found_;       // places, of the last walk
  std::vector<const Instr*> inputs_;  // of the last region
};

}  // namespace tokamak
