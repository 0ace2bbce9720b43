#pragma once

#include "gen/dot_sides.h"
#include "gen/element.h"

// Access to the elements of a dot's operands by (batch, free, contracted) indices.

namespace tokamak {

// One operand of a dot. `dims` are its sizes; `batch`, `contracting` and `free` are indices of its
// dimensions. They point into the dot and the DotSides, which must outlive this.
struct DotOperand {
  const Instr* instr = nullptr;
  const Dims *dims = nullptr, *batch = nullptr, *contracting = nullptr, *free = nullptr;
  bool depth_is_inner = false;  // its minor dimension is contracted

  DotOperand() = default;
  DotOperand(const Instr& dot, const DotSides& sides, size_t operand);
  // The coordinates in the operand at batch coordinates `batch_at`. `along_free` is the linear
  // index over all free dimensions, `depth` that over all contracted dimensions (K).
  Coordinates At(KernelBuilder& b, const Coordinates& batch_at, Scalar along_free,
                 Scalar depth) const;
};

// The element type of factors or sums of this scalar type.
ElementType ElementOfMultiplied(ScalarType type);
// Converts an element to `type`, the type in which the factors are multiplied.
Scalar AsMultiplied(KernelBuilder& b, ElementType from, ScalarType type, Element value);

}  // namespace tokamak
