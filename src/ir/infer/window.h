#pragma once

#include "ir/infer/require.h"

namespace tokamak {

// Sizes, strides and dilations are positive.
Status RequireWindow(const InferInput& in, const Window& window);
// How many windows fit along a dimension of size `size`; kDynamic of kDynamic.
// Faults when that is over the limits.
Result<int64_t> WindowCount(const InferInput& in, int64_t size, const WindowDim& window);

}  // namespace tokamak
