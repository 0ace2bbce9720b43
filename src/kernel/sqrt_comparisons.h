#pragma once

#include <optional>

#include "kernel/builder.h"

namespace tokamak {

// Square-root comparison elimination (strength reduction). sqrt and rounding are monotonic, so a
// comparison of a root (rounded to a narrower type or not) with a constant equals a comparison of
// the radicand with another constant. nullopt if `compare` (lt or le) is not such a comparison, or
// if the radicand may be negative.
//
//   sqrt(x * x + y * y) < 2   ->   x * x + y * y < 4
std::optional<Scalar> CompareSquare(KernelBuilder& b, const ScalarNode& compare);

// Whether a select of the form isnan(x) ? NaN : sqrt(...) is redundant because the root is NaN
// whenever x is.
bool IsRedundantNanSelect(const Kernel& kernel, const ScalarNode& select);

}  // namespace tokamak
