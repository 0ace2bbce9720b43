#pragma once

#include "ir/infer/require.h"

namespace tokamak {

// The result of lhs times rhs (operands 0 and 1) with these dimensions. The
// written element type is taken when sums of products can be kept in it.
Result<Shape> GiveProducts(const InferInput& in, const Sizes& dims);
// None, or one per array.
Status RequirePrecision(const InferInput& in, const std::vector<Precision>& precision);

}  // namespace tokamak
