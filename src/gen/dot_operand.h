#pragma once

#include "gen/dot_dimensions.h"
#include "gen/element.h"

// Access to the elements of a dot's operands by (batch, free, contracted) indices.

namespace tokamak {

// One operand of a dot. `dims` are its sizes; `batch`, `contracting` and `free` are indices of its
// dimensions. They point into the dot and the DotDimensions, which must outlive this.
struct DotOperand {
  const Instr* instr = nullptr;
  const Dims *dims = nullptr, *batch = nullptr, *contracting = nullptr, *free = nullptr;
  bool k_is_minor = false;  // its minor dimension is contracted

  DotOperand() = default;
  DotOperand(const Instr& dot, const DotDimensions& dot_dims, size_t operand);
  // The coordinates in the operand at batch coordinates `batch_at`. `free_index` is the linear
  // index over all free dimensions, `depth` that over all contracted dimensions (K).
  Coordinates At(KernelBuilder& b, const Coordinates& batch_at, Scalar free_index,
                 Scalar depth) const;
};

// The element type of factors or sums of this scalar type.
ElementType DotElementType(ScalarType type);
// Converts an element to `type`, the type in which the factors are multiplied. To u8: the bits of
// f8.
Scalar ConvertToFactorType(KernelBuilder& b, ElementType from, ScalarType type, Element value);

}  // namespace tokamak
