#pragma once

#include <vector>

#include "fusion/plan.h"
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
  // Begins as a plan that is complete.
  explicit Draft(const ComputationPlan& plan);
  // Begins with a group for each instruction that computes; what only moves elements is computed
  // where it is needed.
  Draft(const Computation& computation, const Machine& machine);

  const Computation& computation() const { return *order_.back()->parent(); }

  const std::vector<Instr*>& order() const { return order_; }
  size_t PlaceOf(const Instr& instr) const { return places_[&instr]; }
  // Groups by number, up to size(); of one that is gone, the region has no roots.
  size_t size() const { return groups_.size(); }
  const Group& group(int i) const { return groups_[static_cast<size_t>(i)].group; }
  const Region& region(int i) const { return groups_[static_cast<size_t>(i)].region; }
  uint64_t HashOf(int i) const { return groups_[static_cast<size_t>(i)].hash; }
  bool IsThere(int i) const { return !region(i).roots.empty(); }
  // The group that makes a value; -1: none, it is computed where it is needed or no kernel's.
  int HomeOf(const Instr& value) const { return homes_[&value]; }
  // The groups that need it: read it, or write a part of it.
  const std::vector<int>& ReadersOf(const Instr& value) const { return readers_[&value]; }
  // The groups that compute it, whether it is stored or not.
  const std::vector<int>& ComputedIn(const Instr& value) const { return computed_[&value]; }
  // Something that is no kernel needs it as an array.
  bool IsNeeded(const Instr& value) const { return needed_[&value]; }
  // What lies between an input of a group and the value that is stored, the value last: an input
  // may be the same bytes under another shape. Empty when no kernel makes it.
  std::vector<const Instr*> ChainOf(const Instr& input) const;

  // What a user has said of it, which moves may not break; null: nothing.
  void set_pins(const Pins* pins) { pins_ = pins; }
  const Pins* pins() const { return pins_; }

  // The regions that the groups added would be.
  std::vector<Region> Try(const Change& change);
  void Apply(const Change& change);
  // Whether some group would need what it makes itself, after the change.
  bool MakesCycle(const Change& change, const std::vector<Region>& regions);

 private:
  struct Entry {
    Group group;
    Region region;
    uint64_t hash = 0;  // of the region's structure
  };

  explicit Draft(const Computation& computation);
  bool NeedsArray(const Instr& value) const;
  void AddGroup(Group group, Region region);
  Region RegionOf(const Group& group, int number) const;
  // Marks roots as made by others, as if the change were made; again: takes it back.
  void Rehome(const Change& change, bool forward);
  void Link(int number, bool add);
  bool IsInput(const Instr& operand, const Group& group, int number) const;

  const Pins* pins_ = nullptr;
  std::vector<Instr*> order_;
  InstrMap<size_t> places_;
  InstrMap<int> homes_;
  InstrMap<bool> outside_, needed_;
  InstrMap<std::vector<int>> readers_, computed_;
  std::vector<Entry> groups_;
  mutable InstrMap<uint32_t> seen_;  // in which walk
  mutable uint32_t walk_ = 0;
};

}  // namespace tokamak
