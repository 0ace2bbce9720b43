#pragma once

#include "gen/gpu/dot_results.h"
#include "gen/gpu/tensor_tiling.h"

// Boxes of a dot's results, or of arrays with an element for each of them, between memory and the
// warps that have the results: kBoxRows rows of 128 bytes.

namespace tokamak::gpu {

// Chosen: the rows that a warp has of a multiply.
inline constexpr int64_t kBoxRows = MatrixMultiply::kFragmentRows;

// Dimensions of the tensors that the bulk copy engine sees.
size_t ResultBoxRank(const TensorTiling& tiling);
// The box from this position on, with `line` columns.
std::vector<TileCopy::Dimension> ResultBox(KernelBuilder& b, const TensorTiling& tiling,
                                           const DotDimensions& dot_dims, const DotPosition& at,
                                           int64_t line);

}  // namespace tokamak::gpu
