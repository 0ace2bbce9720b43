#pragma once

#include <unordered_map>

#include "ir/ir.h"

namespace tokamak {

// Pure: the value depends on operands and attributes only and there is no side effect, so equal
// instructions may be merged and unused ones deleted. Does not look into callees: returns false for
// control flow, collectives, host callbacks and stateful random numbers.
bool IsPlain(const Instr& instr);

// Whether op(x, y) and op(y, x) are bitwise equal. False for complex numbers: a NaN may appear in
// the other component or with another sign, which a sort or a bitcast can observe.
bool Commutes(const Instr& instr);

// The instructions that must run in program order, used or not: those with side effects, draws from
// a hidden random state, and calls of computations that contain such. Linear in the module.
class Effects {
 public:
  explicit Effects(const Module& module);

  bool Of(const Instr& instr) const;
  // True for a computation that was added later.
  bool Of(const Computation& computation) const {
    auto it = known_.find(&computation);
    return it == known_.end() || it->second;
  }

 private:
  std::unordered_map<const Computation*, bool> known_;
};

}  // namespace tokamak
