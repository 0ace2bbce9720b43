#pragma once

#include <unordered_map>

#include "ir/ir.h"

namespace tokamak {

// The value follows from operands and attributes alone and nothing else happens: two equal ones are
// one, and one without users is none. Does not look into called computations; of control flow and
// whatever asks a device, a host or a generator of random numbers it says no.
bool IsPlain(const Instr& instr);

// op(x, y) has the bits of op(y, x). Of complex numbers it has not: a NaN may come out in another
// part, and with another sign, which a sort or a bitcast can see.
bool Commutes(const Instr& instr);

// Which instructions must run, in program order, used or not: effects of their own, numbers drawn
// from a hidden state, or calls of computations that have such. Linear in the module, once.
class Effects {
 public:
  explicit Effects(const Module& module);

  bool Of(const Instr& instr) const;
  // Also of a computation that was not there yet.
  bool Of(const Computation& computation) const {
    auto it = known_.find(&computation);
    return it == known_.end() || it->second;
  }

 private:
  std::unordered_map<const Computation*, bool> known_;
};

}  // namespace tokamak
