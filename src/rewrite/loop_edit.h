#pragma once

#include <optional>
#include <set>
#include <vector>

#include "analysis/loops.h"
#include "ir/ir.h"
#include "rewrite/pass.h"

// What takes parts out of a loop shares: rows of arrays that stay, more values to carry, and the
// loop made anew.

namespace tokamak {

// Computations that run in rounds: bodies and conditions of loops, and what they call.
std::set<const Computation*> ComputationsOfLoops(const Module& module);

// A value of a loop's body that is a row (along the first dimension) of a carried array that stays.
struct LoopRow {
  size_t carry = 0;
  Instr* index = nullptr;  // which row
};
std::optional<LoopRow> RowOf(const WhileLoop& loop, const Instr* value);

// A loop that can be edited: of known rounds, used by parts alone, and nobody else runs its
// computations.
std::optional<WhileLoop> EditableLoop(Instr* instr);
// What edit(loop) says to have changed is looked at again; for every loop of the module, inner ones
// first.
template <typename Edit>
Changed ForEditableLoops(Module& module, Edit&& edit) {
  Changed changed = Changed::kNo;
  for (Computation* computation : module.CalleesFirst()) {
    for (bool again = true; again;) {
      again = false;
      for (Instr* instr : computation->Callers()) {
        if (instr->op() != Op::kWhile) continue;
        std::optional<WhileLoop> loop = EditableLoop(instr);
        if (!loop || !edit(*loop)) continue;
        again = true;  // instructions have moved
        changed = Changed::kYes;
        break;
      }
    }
  }
  return changed;
}

class LoopEdit {
 public:
  explicit LoopEdit(const WhileLoop& loop);

  const WhileLoop& loop() const { return loop_; }
  Computation& body() const { return *loop_.body; }
  Computation& before() const { return *loop_.instr->parent(); }

  // Whether a value of the body is made of values that stay, by ops that move elements alone; and
  // the same value, made before the loop.
  bool Stays(const Instr* value) const;
  Instr* BeforeLoop(Instr* value);

  // The index 0 of a type, in the body.
  Instr* Zero(const Instr& like, ElementType type);

  // Carries one value more, that begins as `first`: its parameter in the body. It stays, until
  // SetNext says otherwise.
  Instr* Carry(Instr* first);
  void SetNext(Instr* parameter, Instr* value);
  // What is carried in the place of a value that the body made goes along (ReplaceUses).
  void ReplaceInBody(Instr* old, Instr* by);

  // Nothing in the loop looks at a value any more, but at its own next one.
  void Drop(size_t carry) { dropped_.push_back(carry); }

  // The loop that carries all of it; the body is in order then, and what it does not need is gone.
  // Parts of the old loop are those of the new one, but for what was dropped: these are to be
  // replaced before Close, which puts the instructions around the loop in order.
  Instr* Finish();
  void Close();
  // Where the new loop has what was carried value `carry`.
  size_t NumberAfter(size_t carry) const;

 private:
  WhileLoop loop_;
  std::vector<Instr*> operands_, next_;
  std::vector<Shape> shapes_;
  std::vector<size_t> dropped_;
  Instr* old_ = nullptr;
};

}  // namespace tokamak
