#pragma once

#include <optional>

#include "kernel/builder.h"

namespace tokamak {

// A value equal to the primitive of these operands and cheaper to compute; nothing when the node
// itself is as good. Floats keep every bit (but for NaN payloads).
std::optional<Scalar> Simplify(KernelBuilder& b, const ScalarNode& node);

}  // namespace tokamak
