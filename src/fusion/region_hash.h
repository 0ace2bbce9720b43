#pragma once

#include <cstdint>

#include "gen/region.h"
#include "ir/ir.h"

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

// Equal for regions of a computation that compute the same from inputs of the same shapes:
// whatever is known of one, its kernel above all, holds for the others. What an instruction adds by
// itself is worked out once.
class RegionHasher {
 public:
  explicit RegionHasher(const Computation& computation)
      : own_(computation), numbers_(computation) {}
  uint64_t Of(const Region& region);

 private:
  struct Own {
    uint64_t shape = 0, all = 0;  // of the shape; of shape, op, attributes and what is called
    bool known = false;
  };
  const Own& OwnOf(const Instr& instr);

  InstrMap<Own> own_;
  Numbering numbers_;
};

}  // namespace tokamak
