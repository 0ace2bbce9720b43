#pragma once

#include <vector>

#include "ir/ir.h"

namespace tokamak {

// How a pass makes instructions, and puts them in the place of others without losing what people
// need. What it makes has the origins and the place in the text of the instruction that it is made
// for. What is replaced hands on its origins (pins are among them), and to an instruction that is
// new also what users said of it (sharding, frontend attributes) and what it waits for.
class Editor {
 public:
  enum class Naming : bool { kUnnamed, kLike };  // kLike: what is made has the name of `of`

  // In the computation of `of`, which is to be replaced.
  explicit Editor(Instr& of, Naming naming = Naming::kLike)
      : of_(of), replaced_(&of), computation_(*of.parent()), naming_(naming) {}
  // In any computation, without names.
  Editor(const Instr& like, Computation& in)
      : of_(like), computation_(in), naming_(Naming::kUnnamed) {}

  Instr* Make(Op op, Shape shape, std::vector<Instr*> operands, Attrs attrs = {},
              Computation* called = nullptr);
  Instr* Constant(Literal value);
  // A scalar in every element.
  Instr* Spread(Instr* scalar, const Shape& shape);
  // The same where it is so already.
  Instr* Reshaped(Instr* x, const Dims& dims);
  Instr* Converted(Instr* x, ElementType type);
  Instr* Element(Instr* tuple, size_t i);

  // All uses of `of` are this one's, as the root, too. `of` is gone then.
  void Replace(Instr* by) { Replace(*replaced_, by); }
  // The same of a tuple, or of an array as one value: parts of it that are taken are the values
  // themselves, and a tuple is made of them only where it is used as a whole.
  void ReplaceParts(const std::vector<Instr*>& values);
  // The same of another instruction of the computation.
  void Replace(Instr& from, Instr* to);

 private:
  const Instr& of_;
  Instr* replaced_ = nullptr;  // `of`, where it is to be replaced
  Computation& computation_;
  Naming naming_;
  std::vector<const Instr*> made_;
};

// The body of a sum that is made in the place of an instruction.
Computation* AdditionFor(const Instr& of, ElementType type);

}  // namespace tokamak
