#pragma once

#include "gen/sort_keys.h"
#include "ir/ir.h"
#include "rewrite/editor.h"
#include "support/ordered_key.h"

// Sort keys as unsigned integers of a program. The bits of an element map to an unsigned integer
// with the same order (support/ordered_key.h). One word can then hold a key in its upper bits and a
// payload in its lower bits: comparing words compares keys first.

namespace tokamak {

// The bits of the elements in unsigned integers of type `word`, and back.
Instr* BitsAsWord(Editor& make, Instr* x, ElementType word);
Instr* FromBits(Editor& make, Instr* bits, ElementType type);

// Makes instructions on words: arrays or scalars of one shape. A Code of support/ordered_key.h.
class WordCode {
 public:
  WordCode(Editor& make, const Shape& words) : make_(make), shape_(words.WithoutLayout()) {}

  Instr* Constant(uint64_t value);
  Instr* Make(Op op, Instr* x, Instr* y) { return make_.Make(op, shape_, {x, y}); }
  Instr* Make(Op op, Instr* x, uint64_t y) { return Make(op, x, Constant(y)); }
  Instr* Xor(Instr* x, Instr* y) { return Make(Op::kXor, x, y); }
  Instr* And(Instr* x, Instr* y) { return Make(Op::kAnd, x, y); }
  Instr* Compare(CompareDirection direction, Instr* x, Instr* y);
  Instr* Equal(Instr* x, Instr* y) { return Compare(CompareDirection::kEq, x, y); }
  Instr* Less(Instr* x, Instr* y) { return Compare(CompareDirection::kLt, x, y); }
  Instr* IsNegative(Instr* x, const KeyWord& word) {
    return Compare(CompareDirection::kGe, x, Constant(word.sign()));
  }
  Instr* Select(Instr* condition, Instr* x, Instr* y) {
    return make_.Make(Op::kSelect, shape_, {condition, x, y});
  }
  // The key above a payload of `bits`, and its parts again.
  Instr* Packed(Instr* key, Instr* payload, int bits);
  Instr* Above(Instr* word, int bits);
  Instr* Below(Instr* word, int bits);

 private:
  Editor& make_;
  Shape shape_;
};

}  // namespace tokamak
