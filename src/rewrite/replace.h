#pragma once

// Primitives under rewrite/editor.h: one instruction takes over the uses of another without losing
// metadata. Origins are merged; shardings and other extras are kept.

#include "ir/ir.h"

namespace tokamak {

// Whether every user of `from` may use `to` instead without losing anything the program states. The
// shapes, including layouts, must be equal. `from` must have no control dependences in either
// direction. The extras of `from` (sharding, frontend attributes ...) must be empty or equal to
// those of `to`, or `to` must be new and have no extras yet.
bool CanReplace(const Instr& from, const Instr& to, bool is_new = false);

// Gives `to` the origins of both, and the extras of `from` if `to` is new and has none.
void HandOn(const Instr& from, Instr* to, bool is_new);

// Replaces all uses of `from` (also as the root) by `to`. `to` gets the origins of both. If it is
// new, it also gets the extras, the text position and (if unnamed) the name of `from`. `from`
// stays, without users. CanReplace must hold.
void ReplaceBy(Instr* from, Instr* to, bool is_new = false);

// Adds the origins of `other` to those of `instr`.
void MergeOrigins(Instr* instr, const Instr& other);

// Copies `instr` into `to` with these operands: name, attributes, called computations, origins and
// extras, but not control predecessors, which belong to another computation.
Instr* CopyTo(Computation& to, const Instr& instr, std::vector<Instr*> operands);

// Whether it may be removed once it has no users: it is neither parameter nor root, has no side
// effect, and is not a control predecessor. Does not analyse called computations; dce does.
bool IsRemovable(const Instr& instr);

// Removes `instr` if it is unused and removable, then operands that become so. Linear in the
// removed instructions. Appends each remaining operand that lost a use to `touched`, which may be
// null.
void RemoveUnused(Instr* instr, std::vector<Instr*>* touched = nullptr);

}  // namespace tokamak
