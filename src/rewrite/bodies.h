#pragma once

// Helpers for passes that edit called computations. A computation with several callers is copied
// before it is changed for one of them. A body can be pasted at its call site. ProgramOrder moves
// new instructions to the position of those they replace.

#include <unordered_map>
#include <vector>

#include "ir/ir.h"

namespace tokamak {

// The number of callers of each computation. Construction is linear in the module.
class CallCounts {
 public:
  explicit CallCounts(const Module& module);

  // Returns callee `k` of `caller` for editing. If it has other callers, `caller` first gets a copy
  // (of that computation only, not of its callees).
  Computation* Own(Instr* caller, size_t k);
  void Add(const Instr& caller);     // a new caller
  void Remove(const Instr& caller);  // a caller about to be removed

 private:
  std::unordered_map<const Computation*, size_t> counts_;
};

// Whether the module contains this op. Passes use it to exit early.
bool HasOp(const Module& module, Op op);

// Whether the instruction has properties that would be lost if it were removed or changed its
// shape: a sharding, frontend attributes, control dependences.
bool IsPinned(const Instr& instr);
// Like IsPinned, but ignores control dependences.
bool IsMarked(const Instr& instr);
// Like IsPinned, for the parameters and results of a computation and the arguments passed to it.
// `arguments` has one entry per parameter.
bool IsPinned(const Computation& callee, std::span<Instr* const> arguments);

// Appends copies of the instructions of `from` to `to`, with `arguments` substituted for its
// parameters. Returns the value of its root. `made` receives the copies, in program order.
Instr* PasteBody(const Computation& from, std::span<Instr* const> arguments, Computation& to,
                 std::vector<Instr*>& made);

// Adds the origins of the call to its value, or to each element if the value is a tuple.
void KeepOrigins(const Instr& call, Instr* value);

// Element `i` of a tuple: the operand of a tuple op, otherwise a new get-tuple-element.
Instr* ElementOf(Instr* tuple, size_t i);

// Removes every instruction that is not live and that no root, parameter or side effect needs.
// `live` marks by id the instructions to keep.
void RemoveAllBut(Computation& computation, const InstrMap<char>& live);

// Restores program order in a computation after some instructions replaced others.
class ProgramOrder {
 public:
  explicit ProgramOrder(Computation& computation);
  // Positions `made` where `old` was; `old` may already be removed.
  void Put(const Instr* old, std::vector<Instr*> made);
  // Applies the order if Put was called. This invalidates pointers to instructions of the
  // computation.
  void Finish();

 private:
  Computation& computation_;
  std::vector<Instr*> before_;
  std::unordered_map<const Instr*, std::vector<Instr*>> instead_;
};

}  // namespace tokamak
