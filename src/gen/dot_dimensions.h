#pragma once

#include <optional>

#include "ir/ir.h"

// The dimensions of a dot_general as a batched matrix multiplication.

namespace tokamak {

// A dot as batch x (m x k) * (k x n). Each of batch, m, n, k may stand for several dimensions.
// Refers to the attributes and shapes of the dot, which must outlive it.
// Contracted elements (K) up to which a dot is shallow. Chosen: up to here moving the results costs
// more than the products, so storing the consumer instead of the sums pays.
inline constexpr int64_t kShallowDepth = 128;

struct DotDimensions {
  const DotAttrs& attrs;
  const Dims &lhs_dims, &rhs_dims;  // sizes of the operands' dimensions
  // Indices of the dimensions that are neither batch nor contracting, ascending.
  Dims lhs_free, rhs_free;
  int64_t m = 1, n = 1, k = 1, batch = 1;

  explicit DotDimensions(const Instr& dot);
  bool IsEmpty() const { return m == 0 || n == 0 || k == 0 || batch == 0; }
};

// The attributes of a dot without batch dimensions after its operands were exchanged.
DotAttrs Exchanged(DotAttrs attrs);

// The product of the sizes of the dimensions with the indices `which`.
int64_t SizeAlong(const Dims& dims, const Dims& which);
// The sizes of the dimensions with the indices `which`.
Dims SizesAlong(const Dims& dims, const Dims& which);
// Strides of a row-major array.
Dims RowMajorStrides(const Dims& dims);
// The stride of the row-major array `dims` along several dimensions linearized to one, in the order
// of `which`; nullopt if it is not uniform, 1 if they have a single element.
std::optional<int64_t> LinearizedStride(const Dims& dims, const Dims& which);
// The same for an array with these strides.
std::optional<int64_t> LinearizedStride(const Dims& dims, const Dims& strides, const Dims& which);

}  // namespace tokamak
