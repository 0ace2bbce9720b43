#pragma once

// Structural hashes of regions. The planner caches costs and decisions by them, so equal parts of a
// program (layers, unrolled steps) are planned once.

#include <cstdint>
#include <utility>
#include <vector>

#include "gen/region.h"
#include "ir/ir.h"
#include "support/hash.h"

namespace tokamak {

// Numbers the instructions of a computation in the order in which they are first requested.
class Numbering {
 public:
  explicit Numbering(const Computation& computation) : slots_(computation) {}
  // Discards all numbers in O(1).
  void Begin() {
    ++epoch_;
    next_ = 0;
  }
  uint32_t size() const { return next_; }
  bool Has(const Instr& instr) const { return slots_[&instr].epoch == epoch_; }
  uint32_t Of(const Instr& instr) {
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

// The identity of a region up to structure.
struct FusedRegionKey {
  uint64_t hash = 0;
  // The inputs, then the roots, in a canonical order: it depends on what the region computes only.
  std::vector<const Instr*> interface = {};
  std::vector<uint32_t> numbers = {};  // canonical number of each of region.instrs
};

// Of() is equal for regions that compute the same function of inputs of the same shapes, so
// legality and cost of one hold for the others. It ignores:
//
//   - where a slice of a few elements starts: each of 12 equal layers slices its own PRNG key
//     out of the array of all keys;
//   - the order of instructions, and of the operands of commutative ops.
//
// A walk from the roots numbers the instructions; among commutative operands the one with the
// smaller hash comes first. The hash of an instruction alone is computed once.
class FusedRegionHasher {
 public:
  explicit FusedRegionHasher(const Computation& computation)
      : own_(computation), marks_(computation), numbers_(computation) {}
  uint64_t Of(const FusedRegion& region);
  FusedRegionKey KeyOf(const FusedRegion& region);
  // Equal for regions that are equal instruction by instruction, in the given order.
  uint64_t OfEach(const FusedRegion& region);

 private:
  struct Own {
    // Hashes of the shape; of shape, op, attributes and callees, without the starts of small
    // slices; and of all that with those starts.
    uint64_t shape = 0, all = 0, exact = 0;
    bool known = false;
  };
  // The role of an instruction in the current region.
  struct Mark {
    uint32_t epoch = 0;
    bool is_input = false;
    bool is_swapped = false;       // in the canonical order, operand 1 comes before operand 0
    uint64_t deep = 0, exact = 0;  // of the expression tree, by Own::all and Own::exact
    std::pair<uint64_t, uint64_t> order() const { return {deep, exact}; }
  };
  const Own& OwnOf(const Instr& instr);
  bool IsIn(const Instr& instr) const { return marks_[&instr].epoch == epoch_; }
  // Computes Mark::deep and Mark::exact: hashes of each instruction with its expression tree, and
  // of inputs with their users.
  void HashDeeply(const FusedRegion& region);
  uint64_t DeepOf(const Instr& instr) {
    return IsIn(instr) ? marks_[&instr].deep : OwnOf(instr).all;
  }
  uint64_t ExactOf(const Instr& instr) {
    return IsIn(instr) ? marks_[&instr].exact : OwnOf(instr).exact;
  }
  // Canonical order of commutative operands.
  bool IsBefore(const Instr& x, const Instr& y) {
    return std::pair(DeepOf(x), ExactOf(x)) < std::pair(DeepOf(y), ExactOf(y));
  }
  // Operand i in the canonical order.
  const Instr& OperandOf(const Instr& instr, size_t i) const {
    return *instr.operand(i < 2 && marks_[&instr].is_swapped ? 1 - i : i);
  }
  void HashRoot(const Instr& root, Hasher& hasher);
  void Add(const Instr& instr, Hasher& hasher);

  InstrMap<Own> own_;
  InstrMap<Mark> marks_;
  Numbering numbers_;
  uint32_t epoch_ = 0;
  struct Step {
    const Instr* instr;
    size_t next;  // operand to visit next
  };
  std::vector<Step> open_;
  std::vector<const Instr*> roots_;  // of the current region, in the canonical order
};

}  // namespace tokamak
