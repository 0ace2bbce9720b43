#pragma once

// Structural hashes of regions. The planner caches costs and decisions by them, so identical parts
// of a program (layers, unrolled steps) are planned once. The hashes have 64 bits. Only KernelCache
// verifies that regions with equal hashes are equal; all other caches assume it.

#include <cstdint>
#include <utility>
#include <vector>

#include "gen/region.h"
#include "ir/ir.h"
#include "support/hash.h"

namespace tokamak {

// Numbers the instructions of a computation in the order in which they are first requested. Call
// Reset() before the first use.
class Numbering {
 public:
  explicit Numbering(const Computation& computation) : slots_(computation) {}
  // Discards all numbers in O(1).
  void Reset() {
    ++epoch_;
    next_ = 0;
  }
  uint32_t size() const { return next_; }
  bool Has(const Instr& instr) const { return slots_[&instr].epoch == epoch_; }
  // Assigns the next number on the first request.
  uint32_t NumberOf(const Instr& instr) {
    Slot& slot = slots_[&instr];
    if (slot.epoch != epoch_) slot = {epoch_, next_++};
    return slot.number;
  }

 private:
  struct Slot {
    uint32_t epoch = 0, number = 0;
  };
  InstrMap<Slot> slots_;
  uint32_t epoch_ = 0, next_ = 0;
};

// The structural identity of a region.
struct FusedRegionKey {
  uint64_t hash = 0;  // FusedRegionHasher::HashOf
  // The inputs, then the roots, in a canonical order, which is independent of names and of the
  // order of instructions.
  std::vector<const Instr*> interface = {};
  std::vector<uint32_t> numbers = {};  // canonical number of each of region.instrs
};

// HashOf() is equal for regions with the same instructions on inputs of the same shapes, so
// legality and cost of one hold for the others. It ignores:
//
//   - where a small slice, of at most 16 elements (kMaxSmallSliceElements), starts, except whether
//     it starts at 0: each of 12 identical layers slices its own PRNG key out of the array of all
//     keys;
//   - the order of instructions, and of the operands of commutative ops.
//
// Regions that compute the same function by different instructions have different hashes.
//
// A walk from the roots numbers the instructions; among commutative operands the one with the
// smaller hash comes first. The hash of an instruction without its operands is computed once per
// computation.
class FusedRegionHasher {
 public:
  explicit FusedRegionHasher(const Computation& computation)
      : instr_hashes_(computation), nodes_(computation), numbers_(computation) {}
  uint64_t HashOf(const FusedRegion& region);
  FusedRegionKey KeyOf(const FusedRegion& region);
  // Ignores only names: equal for regions that have equal instructions, with the same slice
  // starts, in the same order. Such regions can share a kernel.
  uint64_t ExactHashOf(const FusedRegion& region);

 private:
  // Hashes of an instruction without its operands.
  struct InstrHashes {
    uint64_t shape = 0;
    // Shape, op, attributes and callees; the first one without the starts of small slices.
    uint64_t without_slice_starts = 0, with_slice_starts = 0;
    bool is_computed = false;
  };
  // An instruction or input in the current region. The hashes of an instruction cover its
  // expression tree within the region: node_hash by InstrHashes::without_slice_starts,
  // exact_node_hash by with_slice_starts. An input has no operands in the region. Both its hashes
  // are equal and cover its shape and its users in the region, each without its other operands, so
  // that they distinguish inputs of the same shape.
  struct RegionNode {
    uint32_t epoch = 0;  // the node belongs to the current region if this is epoch_
    bool is_input = false;
    bool is_swapped = false;  // in the canonical order, operand 1 comes before operand 0
    uint64_t node_hash = 0, exact_node_hash = 0;
    std::pair<uint64_t, uint64_t> sort_key() const { return {node_hash, exact_node_hash}; }
  };
  const InstrHashes& InstrHashesOf(const Instr& instr);
  bool IsInRegion(const Instr& instr) const { return nodes_[&instr].epoch == epoch_; }
  // Computes the hashes of all nodes.
  void HashNodes(const FusedRegion& region);
  // An operand outside the region is an immediate, or the array that a partial update writes
  // into: it is not a node and has the hash of the instruction without its operands.
  uint64_t NodeHashOf(const Instr& instr) {
    return IsInRegion(instr) ? nodes_[&instr].node_hash : InstrHashesOf(instr).without_slice_starts;
  }
  uint64_t ExactNodeHashOf(const Instr& instr) {
    return IsInRegion(instr) ? nodes_[&instr].exact_node_hash
                             : InstrHashesOf(instr).with_slice_starts;
  }
  // Canonical order of commutative operands.
  bool IsBefore(const Instr& x, const Instr& y) {
    return std::pair(NodeHashOf(x), ExactNodeHashOf(x)) <
           std::pair(NodeHashOf(y), ExactNodeHashOf(y));
  }
  // Operand i in the canonical order.
  const Instr& OperandOf(const Instr& instr, size_t i) const {
    return *instr.operand(i < 2 && nodes_[&instr].is_swapped ? 1 - i : i);
  }
  // Numbers the instructions from which a root is computed, and adds them to the hash.
  void HashRoot(const Instr& root, Hasher& hasher);
  // Adds one instruction, whose operands have numbers, to the hash and numbers it.
  void HashInstr(const Instr& instr, Hasher& hasher);

  InstrMap<InstrHashes> instr_hashes_;
  InstrMap<RegionNode> nodes_;
  Numbering numbers_;
  uint32_t epoch_ = 0;  // number of the current region
  // Depth-first walk of HashRoot.
  struct Frame {
    const Instr* instr;
    size_t next_operand;
  };
  std::vector<Frame> stack_;
  std::vector<const Instr*> roots_;  // of the current region, in the canonical order
};

}  // namespace tokamak
