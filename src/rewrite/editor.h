#pragma once

#include <vector>

#include "ir/ir.h"

namespace tokamak {

// Makes instructions in the place of one.
class Editor {
 public:
  explicit Editor(Instr& of) : of_(of), computation_(*of.parent()) {}
  Instr* Make(Op op, Shape shape, std::vector<Instr*> operands, Attrs attrs = {});
  Instr* Constant(Literal value);
  // A scalar in every element.
  Instr* Spread(Instr* scalar, const Shape& shape);
  // The same where it is so already.
  Instr* Reshaped(Instr* x, const Dims& dims);
  Instr* Converted(Instr* x, ElementType type);
  // All uses of the instruction are this one's. The instruction is gone then.
  void Replace(Instr* by);

 private:
  Instr& of_;
  Computation& computation_;
};

// The body of a sum that is made in the place of an instruction.
Computation* AdditionFor(const Instr& of, ElementType type);

}  // namespace tokamak
