#pragma once

// What rewrite/editor.h stands on: one instruction takes over the uses of another without losing
// what people need. Origins are merged, shardings and other extras stay.

#include "ir/ir.h"

namespace tokamak {

// Whether every user of `from` may use `to` instead and nothing that a program states is lost: the
// shapes are equal, layouts too; `from` waits for nobody by control and nobody for it; what `from`
// says of itself (its sharding, frontend attributes ...) is nothing, or `to` says the same, or `to`
// is new and still has no extras.
bool CanReplace(const Instr& from, const Instr& to, bool is_new = false);

// `to` gets the origins of both, and the extras of `from` when it is new and has none.
void HandOn(const Instr& from, Instr* to, bool is_new);

// Replaces all uses of `from` (also as the root) by `to`, which gets the origins of both, and, when
// it is new, the extras, the place in the text and (having none) the name of `from`. `from` stays,
// without users. CanReplace must hold.
void ReplaceBy(Instr* from, Instr* to, bool is_new = false);

// `instr` gets the origins of `other` besides its own.
void MergeOrigins(Instr* instr, const Instr& other);

// A copy in `to` with these operands: name, attributes, called computations, origins and extras,
// but for control predecessors, which are of another computation.
Instr* CopyTo(Computation& to, const Instr& instr, std::vector<Instr*> operands);

// Whether it may be removed once nothing uses it: it is no parameter and no root, has no effect,
// and nobody waits for it. Of calls it does not know: dce does.
bool IsRemovable(const Instr& instr);

// Removes `instr` if it is unused and removable, then operands that this leaves so. Linear in what
// is removed. Each operand that stays but lost a use is told to `touched`, which may be null.
void RemoveUnused(Instr* instr, std::vector<Instr*>* touched = nullptr);

}  // namespace tokamak
