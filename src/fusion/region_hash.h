#pragma once

#include <cstdint>
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
// whatever is known of one, its kernel above all, holds for the others. In which order instructions
// stand, and operands where that is all the same, does not matter: they are met from the roots on,
// of such operands first the one with the lesser hash. What an instruction adds by itself is worked
// out once.
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
    uint64_t shape = 0, all = 0;  // of the shape; of shape, op, attributes and what is called
    bool known = false;
  };
  // What an instruction is to the region at hand.
  struct Mark {
    uint32_t round = 0;
    bool is_input = false;
    bool is_swapped = false;  // its second operand comes first
    uint64_t deep = 0;
  };
  const Own& OwnOf(const Instr& instr);
  bool IsIn(const Instr& instr) const { return marks_[&instr].round == round_; }
  // The hash of each instruction with all that it is computed from, and of inputs with those who
  // use them.
  void HashDeeply(const Region& region);
  uint64_t DeepOf(const Instr& instr) {
    return IsIn(instr) ? marks_[&instr].deep : OwnOf(instr).all;
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
