#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "kernel/kernel.h"
#include "kernel/range.h"

namespace tokamak {

// Where each pure value of a kernel is computed: in the block of least loop depth between the place
// where its operands are known and the one that all its users share; as late as that allows. What
// might fault (a load that is not known to be in bounds, a division, and all that is computed from
// them) is computed only where a user surely follows: when users in several blocks need it that
// perhaps none of them runs, it is computed in each of these blocks, none of them within another.
class Placement {
 public:
  // The kernel must outlive this and stay as it is.
  explicit Placement(const Kernel& kernel);

  // The values to compute in `block` before its statement i, operands first, else in the order in
  // which statements need them; i = size: at the end, which only the condition of a while asks for.
  // Constants, extents and variables of loops have no place.
  std::span<const ValueId> Before(const Block& block, size_t i) const;

 private:
  struct Node {  // a block
    const Block* block = nullptr;
    int parent = -1;
    size_t at = 0;  // the statement of the parent that holds it
    int depth = 0, loops = 0;
    bool conditional = false;  // runs perhaps not, although the parent runs
  };
  struct Place {
    int block = -1;
    size_t at = 0;
  };

  int AddBlock(const Block& block, int parent, size_t at, bool loop, bool conditional);
  void AddChildren(int block);
  Place Raised(Place place, int to) const;  // the statement of block `to` that holds `place`
  int Common(int x, int y) const;
  void Use(ValueId value, Place place);
  bool MayFault(const ScalarNode& node);
  int ChildOf(int block, int within) const;  // the block right under `block` that holds `within`
  // A block of least depth that holds both, and its first statement that holds one.
  Place Shared(Place x, Place y) const;
  bool SurelyUsed(int block, const std::vector<Place>& uses) const;
  void Split(const std::vector<Place>& uses, std::vector<Place>& places) const;
  Place Hoisted(Place place, size_t value) const;
  // Of what may fault.
  std::vector<Place> PlacesOf(size_t value) const;
  void FindEarliest();
  void CollectUses();
  void Number(const Block& block);
  void NumberValue(ValueId value);
  void Put(ValueId value, Place place);
  void Choose();
  size_t SlotOf(Place place) const {
    return first_slot_[static_cast<size_t>(place.block)] + place.at;
  }

  const Kernel& kernel_;
  RangeTable ranges_;
  std::vector<Node> blocks_;
  std::unordered_map<const Block*, int> numbers_;
  std::vector<int> loop_blocks_;    // the body of each loop
  std::vector<int> earliest_;       // per value
  std::vector<bool> may_fault_;     // per value: it, or what it is computed from
  std::vector<Place> read_places_;  // of reads and shuffles
  std::vector<Place> shared_;       // per value: by all of its uses
  std::unordered_map<size_t, std::vector<Place>> uses_;  // of what may fault, by value
  std::vector<uint32_t> order_;  // per value: when a walk over the statements has its operands; 0
  uint32_t next_ = 1;
  std::vector<ValueId> stack_;  // of one walk
  // A slot for each statement of a block, and for its end: values_ has those of the first slot,
  // then those of the next.
  std::vector<size_t> first_slot_;  // per block
  std::vector<std::pair<size_t, ValueId>> chosen_;
  std::vector<uint32_t> slot_begin_;
  std::vector<ValueId> values_;
};

}  // namespace tokamak
