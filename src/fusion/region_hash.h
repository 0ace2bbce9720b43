#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "gen/region.h"
#include "ir/ir.h"
#include "support/hash.h"

namespace tokamak {

// Numbers for some instructions of a computation, in the order in which they are first met.
class Numbering {
 public:
  explicit Numbering(const Computation& computation) : slots_(computation) {}
  // Forgets all; costs nothing.
  void Begin() {
    ++round_;
    next_ = 0;
  }
  uint32_t size() const { return next_; }
  bool Has(const Instr& instr) const { return slots_[&instr].round == round_; }
  uint32_t Of(const Instr& instr) {
    Slot& slot = slots_[&instr];
    if (slot.round != round_) slot = {round_, next_++};
    return slot.number;
  }

 private:
  struct Slot {
    uint32_t round = 0, number = 0;
  };
  InstrMap<Slot> slots_;
  uint32_t round_ = 0, next_ = 0;
};

// What tells regions apart.
struct RegionKey {
  uint64_t hash = 0;
  // Its inputs and then its roots, in an order that follows from what it computes.
  std::vector<const Instr*> ends = {};
  std::vector<uint32_t> numbers = {};  // of each instruction, in such an order, too
};

// Equal for regions of a computation that compute the same from inputs of the same shapes:
// whether one has a kernel, and what that takes, holds for the others. Where a few elements are cut
// out of an array does not matter for that: each of 12 equal layers takes a random key of its own
// from the array of all. In which order instructions stand, and operands where that is all the
// same, does not matter either: they are met from the roots on, of such operands first the one with
// the lesser hash. What an instruction adds by itself is worked out once.
class RegionHasher {
 public:
  explicit RegionHasher(const Computation& computation)
      : own_(computation), marks_(computation), numbers_(computation) {}
  uint64_t Of(const Region& region);
  RegionKey KeyOf(const Region& region);
  // Equal for regions that are the same instruction by instruction, as they stand.
  uint64_t OfEach(const Region& region);

 private:
  struct Own {
    // Of the shape; of shape, op, attributes and what is called; the same with places of a few
    // elements.
    uint64_t shape = 0, all = 0, exact = 0;
    bool known = false;
  };
  // What an instruction is to the region at hand.
  struct Mark {
    uint32_t round = 0;
    bool is_input = false;
    bool is_swapped = false;       // its second operand comes first
    uint64_t deep = 0, exact = 0;  // with all that it is computed from
    std::pair<uint64_t, uint64_t> order() const { return {deep, exact}; }
  };
  const Own& OwnOf(const Instr& instr);
  bool IsIn(const Instr& instr) const { return marks_[&instr].round == round_; }
  // The hash of each instruction with all that it is computed from, and of inputs with those who
  // use them.
  void HashDeeply(const Region& region);
  uint64_t DeepOf(const Instr& instr) {
    return IsIn(instr) ? marks_[&instr].deep : OwnOf(instr).all;
  }
  uint64_t ExactOf(const Instr& instr) {
    return IsIn(instr) ? marks_[&instr].exact : OwnOf(instr).exact;
  }
  // Whether an operand comes before another where their order does not matter.
  bool IsBefore(const Instr& x, const Instr& y) {
    return std::pair(DeepOf(x), ExactOf(x)) < std::pair(DeepOf(y), ExactOf(y));
  }
  // Operand i in an order that follows from what they are, where the order does not matter.
  const Instr& OperandOf(const Instr& instr, size_t i) const {
    return *instr.operand(i < 2 && marks_[&instr].is_swapped ? 1 - i : i);
  }
  void Meet(const Instr& root, Hasher& hasher);
  void Add(const Instr& instr, Hasher& hasher);

  InstrMap<Own> own_;
  InstrMap<Mark> marks_;
  Numbering numbers_;
  uint32_t round_ = 0;
  struct Step {
    const Instr* instr;
    size_t next;  // operand
  };
  std::vector<Step> open_;
  std::vector<const Instr*> roots_;  // of the region at hand, in order
};

}  // namespace tokamak
