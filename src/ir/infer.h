#pragma once

#include <span>

#include "ir/ir.h"
#include "support/result.h"

namespace tokamak {

// Shape inference doubles as the verifier: one function per op family (infer/*.cc) computes the
// shape of the result from operands, attributes and called computations, and rejects invalid uses
// of the op. If the shape is part of the program (reshape, broadcast, custom-call), that function
// checks it.

struct InferInput {
  Op op;
  std::span<const Shape> operands;
  const Attrs& attrs;
  std::span<Computation* const> called;
  size_t captures = 0;
  const Shape* written = nullptr;  // the shape in the program; null when building by hand
};

// The shape of the result. With dynamic dimensions on either side, known sizes win. The written
// shape is returned if it agrees and is more specific.
Result<Shape> InferShape(const InferInput& input);

// Infers the shape and compares it with the instruction's shape. Errors carry the text position of
// the instruction.
Status VerifyInstr(const Instr& instr);
// Verifies every instruction and the structure: operands belong to the same computation and precede
// their users, parameters are dense, roots are set, calls are acyclic.
Status VerifyModule(const Module& module);

}  // namespace tokamak
