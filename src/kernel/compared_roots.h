#pragma once

#include <optional>

#include "kernel/builder.h"

namespace tokamak {

// A comparison of a root with a constant, rounded or not, is one of what the root is taken of with
// another constant: roots and roundings never turn the order of two numbers round. Nothing when
// `compare` (lt or le) is not such a comparison, or the number might be negative.
//
//   sqrt(x * x + y * y) < 2   ->   x * x + y * y < 4
std::optional<Scalar> CompareSquare(KernelBuilder& b, const ScalarNode& compare);

// Whether a select of NaN where something is NaN (its operands: test, NaN, a root) has NaN there
// anyhow.
bool IsNanAnyhow(const Kernel& kernel, const ScalarNode& select);

}  // namespace tokamak
