#pragma once

#include <string>
#include <vector>

#include "ir/ir.h"

namespace tokamak {

// Instructions of one computation that run as one kernel. What it reads are arrays made elsewhere;
// what it writes are the values of its roots that others need. Constants of one value (scalars,
// splats) are never inputs: they stand in the code.
struct Region {
  const Computation* computation = nullptr;
  std::vector<const Instr*> instrs;  // operands before users
  std::vector<const Instr*> inputs;  // arrays; each once
  std::vector<const Instr*> roots;   // arrays, or tuples of arrays, of which all parts are written
};

// The arrays that an array or a flat tuple of arrays is made of.
std::vector<Shape> PartsOf(const Shape& shape);
// Whether every part is an array with static dimensions and a plain element type.
bool IsPlainArray(const Shape& shape);

// Whether other instructions are ordered before or after it by no value that it takes or gives.
bool IsTied(const Instr& instr);

// A constant that stands in the code of a kernel.
bool IsImmediate(const Instr& instr);

// The inputs of these instructions: operands that are not among them, each once, in the order of
// their first use.
std::vector<const Instr*> InputsOf(const std::vector<const Instr*>& instrs);

}  // namespace tokamak
