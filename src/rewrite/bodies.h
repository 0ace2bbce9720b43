#pragma once

// How passes edit called computations: one that several call is copied before it is changed for one
// of them; a body is pasted where its caller stood; what is made gets the place of what it
// replaces.

#include <unordered_map>
#include <vector>

#include "ir/ir.h"

namespace tokamak {

// How many instructions call each computation. Linear in the module, once.
class CallCounts {
 public:
  explicit CallCounts(const Module& module);

  // Callee `k` of `caller`, which may be edited afterwards: nobody else calls it. A copy (of it,
  // not of what it calls) where somebody else does.
  Computation* Own(Instr* caller, size_t k);
  void Add(const Instr& caller);     // a caller that was made
  void Remove(const Instr& caller);  // one that is about to go

 private:
  std::unordered_map<const Computation*, size_t> counts_;
};

// Whether the module has such an instruction: what passes ask before they look closer.
bool HasOp(const Module& module, Op op);

// Something is said of the instruction that would have no place if it went or changed its shape: a
// sharding, frontend attributes, control edges.
bool IsPinned(const Instr& instr);
// The same, control edges apart.
bool IsMarked(const Instr& instr);
// The same of parameters or results of a computation, given what its caller hands to it.
// `arguments` are as many as it has parameters.
bool IsPinned(const Computation& callee, std::span<Instr* const> arguments);

// Appends copies of the instructions of `from` to `to`, `arguments` in place of its parameters, and
// gives the value of its root. `made` gets the copies, in program order.
Instr* PasteBody(const Computation& from, std::span<Instr* const> arguments, Computation& to,
                 std::vector<Instr*>& made);

// The value of a call keeps the call's origins, each part of it when it is a tuple.
void KeepOrigins(const Instr& call, Instr* value);

// Element `i` of a tuple: what it was made of, or taken out of it.
Instr* ElementOf(Instr* tuple, size_t i);

// Removes everything that neither root, parameters, effects nor `live` need. `live` is a table by
// id of the instructions that stay.
void RemoveAllBut(Computation& computation, const InstrMap<char>& live);

// Program order for a computation in which some instructions stand in the place of others.
class Places {
 public:
  explicit Places(Computation& computation);
  // `made` stands where `old`, which may be removed by then, stood.
  void Put(const Instr* old, std::vector<Instr*> made);
  // Makes it so if anything was put; pointers to instructions of the computation are void then.
  void Finish();

 private:
  Computation& computation_;
  std::vector<Instr*> before_;
  std::unordered_map<const Instr*, std::vector<Instr*>> instead_;
};

}  // namespace tokamak
