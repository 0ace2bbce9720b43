#pragma once

#include <optional>

#include "kernel/builder.h"

namespace tokamak {

// Peephole simplification of one node. Returns an equal value that is cheaper to compute, or
// nullopt if there is none. Exact for floats, except for NaN payloads.
std::optional<Scalar> Simplify(KernelBuilder& b, const ScalarNode& node);

}  // namespace tokamak
