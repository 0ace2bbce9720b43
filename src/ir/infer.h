#pragma once

#include <span>

#include "ir/ir.h"
#include "support/result.h"

namespace tokamak {

// Inference is the verifier: one function per op family (infer/*.cc) computes
// the shape of the result from operands, attributes and called computations,
// and refuses what the op does not allow. Where the shape is part of the
// program (reshape, broadcast, custom-call), that function checks it.

struct InferInput {
  Op op;
  std::span<const Shape> operands;
  const Attrs& attrs;
  std::span<Computation* const> called;
  size_t captures = 0;
  const Shape* written = nullptr;  // the shape in the program; null when building by hand
};

// The shape of the result. With dynamic dimensions on either side, known sizes
// win; the written shape is returned where it agrees but says more.
Result<Shape> InferShape(const InferInput& input);

// Infers, and compares with the instruction's own shape. Errors carry its place.
Status VerifyInstr(const Instr& instr);
// Every instruction, plus structure: operands of the same computation and
// before their users, parameters dense, roots set, calls without cycles.
Status VerifyModule(const Module& module);

}  // namespace tokamak
