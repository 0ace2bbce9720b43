#pragma once

#include "ir/infer/require.h"

namespace tokamak {

// Shape inference shared by dot and convolution. InferProducts returns the result of lhs times rhs
// (operands 0 and 1) with these dimensions. The written element type is accepted if it can hold the
// accumulated products.
Result<Shape> InferProducts(const InferInput& in, const Sizes& dims);
// `precision` is empty or has one entry per operand.
Status RequirePrecision(const InferInput& in, const std::vector<Precision>& precision);

}  // namespace tokamak
