#pragma once

#include "gen/dot_sides.h"
#include "gen/element.h"

// Access to the elements of a dot's operands by (batch, free, contracted) indices.

namespace tokamak {

// One operand of a dot and its batch, contracting and free dimensions.
struct DotOperand {
  const Instr* instr = nullptr;
  const Dims *dims = nullptr, *batch = nullptr, *contracting = nullptr, *free = nullptr;
  bool depth_is_inner = false;  // its minor dimension is contracted

  DotOperand() = default;
  DotOperand(const Instr& dot, const DotSides& sides, size_t operand);
  // The coordinates at a batch index, with all free dimensions and all contracted dimensions
  // linearized to one index each.
  Coordinates At(KernelBuilder& b, const Coordinates& batch_at, Scalar along_free,
                 Scalar depth) const;
};

// An element type with this scalar type, among those that dots multiply.
ElementType ElementOfMultiplied(ScalarType type);
// Converts an element to the type of the factors.
Scalar AsMultiplied(KernelBuilder& b, ElementType from, ScalarType type, Element value);

}  // namespace tokamak
