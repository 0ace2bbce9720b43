#pragma once

// Formulas in a computation of a module, in the place of one instruction.

#include "rewrite/expand/term.h"

namespace tokamak {

class PlacedTerms final : public TermGraph {
 public:
  // What is made gets the origins and the place of `of`.
  explicit PlacedTerms(Instr* of) : of_(of) {}

  Instr* Make(Op op, const Shape& shape, std::vector<Instr*> operands, const Attrs& attrs,
              Computation* called = nullptr) override;
  Term Of(Instr* instr) { return {this, instr}; }
  Term Operand(size_t i) { return {this, of_->operand(i)}; }

  // Puts `to` in the place of the instruction and removes that. No, and nothing is left behind,
  // when the program says something of the instruction that would be lost.
  bool Replace(Instr* to);

 private:
  Instr* of_;
  std::vector<Instr*> made_;
};

// Whether arrays of it can be written in terms: sizes are known, elements are numbers. Of a tuple:
// each.
bool IsOrdinary(const Shape& shape);

}  // namespace tokamak
