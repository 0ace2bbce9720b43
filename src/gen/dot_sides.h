#pragma once

#include <optional>

#include "ir/ir.h"

namespace tokamak {

// The sides of a dot: lhs is batch x m x k, rhs is batch x k x n, each of several dimensions.
struct DotSides {
  const DotAttrs& attrs;
  const Dims &lhs, &rhs;    // dimensions of the operands
  Dims lhs_free, rhs_free;  // which of them are neither batch nor contracted, ascending
  int64_t m = 1, n = 1, k = 1, batch = 1;

  explicit DotSides(const Instr& dot);
  bool IsEmpty() const { return m == 0 || n == 0 || k == 0 || batch == 0; }
};

// How many elements these dimensions have.
int64_t SizeOf(const Dims& dims, const Dims& which);
// The sizes of these dimensions.
Dims SizesOf(const Dims& dims, const Dims& which);
// Distances between neighbours along each dimension of a row-major array.
Dims RowMajorStrides(const Dims& dims);
// The distance between neighbours along dimensions taken as one, in this order; nothing when it is
// not the same everywhere. 1 when there are no neighbours.
std::optional<int64_t> DistanceAlong(const Dims& dims, const Dims& which);

}  // namespace tokamak
