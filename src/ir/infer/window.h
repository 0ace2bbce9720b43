#pragma once

#include "ir/infer/require.h"

namespace tokamak {

// Windows of reduce-window, select-and-scatter and convolution. Requires positive sizes, strides
// and dilations.
Status RequireWindow(const InferInput& in, const Window& window);
// The number of windows that fit along a dimension of size `size`; kDynamic if `size` is kDynamic.
// Returns an error if it exceeds the limits.
Result<int64_t> WindowCount(const InferInput& in, int64_t size, const WindowDim& window);

}  // namespace tokamak
