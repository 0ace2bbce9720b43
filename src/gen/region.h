#pragma once

#include <span>
#include <string>
#include <vector>

#include "ir/ir.h"

// FusedRegion: the unit of fusion, a set of instructions that becomes one kernel.

namespace tokamak {

// Instructions of one computation that run as one kernel. It reads arrays produced outside and
// writes its roots, the values used outside. Constants with one value (scalars, splats) are never
// inputs: they are immediates in the kernel's code.
struct FusedRegion {
  const Computation* computation = nullptr;
  std::vector<const Instr*> instrs;  // operands before users
  // Arrays that it reads, without duplicates. The array that a partial update overwrites in part
  // (dynamic-update-slice, scatter) is not read.
  std::vector<const Instr*> inputs;
  std::vector<const Instr*> roots;  // arrays, or flat tuples; all arrays of a tuple are outputs
};

// The shapes of an instruction's results: a view into its shape, which must outlive it. It is asked
// for per element, so shapes are not copied.
class ResultShapes : public std::span<const Shape> {
 public:
  using std::span<const Shape>::span;
  operator std::vector<Shape>() const { return {begin(), end()}; }
};

// The shapes of an instruction's results: the array itself, or the arrays of a flat tuple.
inline ResultShapes ResultShapesOf(const Shape& shape) {
  if (shape.IsTuple()) return ResultShapes(shape.elements());
  return ResultShapes(&shape, 1);
}
ResultShapes ResultShapesOf(Shape&& shape) = delete;
// Whether the shape is an array with static dimensions and an unquantized element type.
bool IsPlainArray(const Shape& shape);

// Whether the instruction has control dependencies (predecessors or successors).
bool HasControlDependencies(const Instr& instr);

// Whether a constant becomes an immediate in the code of a kernel.
bool IsImmediate(const Instr& instr);

// Operands of these instructions that are neither among them nor immediates (IsImmediate), without
// duplicates, in order of first use. Unlike FusedRegion::inputs they include arrays that an
// instruction only overwrites in part.
std::vector<const Instr*> InputsOf(const std::vector<const Instr*>& instrs);

}  // namespace tokamak
