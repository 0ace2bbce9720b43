#pragma once

#include <optional>
#include <set>
#include <vector>

#include "analysis/loops.h"
#include "ir/ir.h"
#include "rewrite/pass.h"

// Shared code of passes that move computations out of a loop: rows of loop-invariant arrays,
// additional carried values, and reconstruction of the loop.

namespace tokamak {

// Limits of passes that move products out of loops: iterations, multiplications per iteration that
// justify another carried array, and bytes of the array. Chosen.
inline constexpr uint64_t kMinMovedTrips = 4;
inline constexpr int64_t kMinMovedWork = int64_t{1} << 16, kMaxMovedBytes = int64_t{1} << 30;

// Computations that run inside loops: bodies and conditions, and the computations they call.
std::set<const Computation*> ComputationsOfLoops(const Module& module);

// A value in a loop body that is a row (along the first dimension) of a loop-invariant carried
// array.
struct LoopRow {
  size_t carry = 0;
  Instr* index = nullptr;  // which row
};
std::optional<LoopRow> RowOf(const WhileLoop& loop, const Instr* value);

// A loop that can be edited: its trip count is known, only get-tuple-elements use it, and its
// computations have no other callers.
std::optional<WhileLoop> EditableLoop(Instr* instr);
// Calls edit(loop) for every loop of the module, inner loops first. Visits a loop again after a
// change.
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

  // Whether a value of the body is computed from loop-invariant values by data-movement ops only;
  // and the same value, computed before the loop.
  bool IsLoopInvariant(const Instr* value) const;
  Instr* BeforeLoop(Instr* value);

  // A zero index of this type, in the body.
  Instr* Zero(const Instr& like, ElementType type);

  // Adds a carried value that starts as `first` and returns its parameter in the body. It is
  // loop-invariant until SetNext is called.
  Instr* Carry(Instr* first);
  void SetNext(Instr* parameter, Instr* value);
  // Replaces uses in the body. Also updates carried values whose next value was `old`
  // (ReplaceUses).
  void ReplaceInBody(Instr* old, Instr* by);

  // Marks a carried value as unused in the loop, except by its own next value.
  void Drop(size_t carry) { dropped_.push_back(carry); }

  // Creates the loop with all edits. The body is then in order and free of dead instructions. Uses
  // of elements of the old loop become uses of the new one, except for dropped values; the caller
  // replaces those before Close, which restores the order of the instructions around the loop.
  Instr* Finish();
  void Close();
  // The index in the new loop of old carried value `carry`.
  size_t NumberAfter(size_t carry) const;

 private:
  WhileLoop loop_;
  std::vector<Instr*> operands_, next_;
  std::vector<Shape> shapes_;
  std::vector<size_t> dropped_;
  Instr* old_ = nullptr;
};

}  // namespace tokamak
