#pragma once

#include "gen/dot_sides.h"
#include "gen/element.h"

namespace tokamak {

// One operand of a dot, with the dimensions that it has of each kind.
struct DotOperand {
  const Instr* instr = nullptr;
  const Dims *dims = nullptr, *batch = nullptr, *contracting = nullptr, *free = nullptr;
  bool depth_is_inner = false;  // its last dimension is contracted

  DotOperand() = default;
  DotOperand(const Instr& dot, const DotSides& sides, size_t operand);
  // Where it is at a batch, with the others' dimensions taken as one each.
  Coordinates At(KernelBuilder& b, const Coordinates& batch_at, Scalar along_free,
                 Scalar depth) const;
};

// An element type of this scalar type, of those that are multiplied.
ElementType ElementOfMultiplied(ScalarType type);
// An element as it is multiplied.
Scalar AsMultiplied(KernelBuilder& b, ElementType from, ScalarType type, Element value);

}  // namespace tokamak
