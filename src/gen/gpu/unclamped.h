#pragma once

#include <optional>

#include "kernel/kernel.h"

// Removal of index clamps in kernels with pads.

namespace tokamak::gpu {

// Returns the kernel without index clamps. A pad then loads discarded elements from where they
// would be in a larger array, and every index is affine in the element's index. Requires that
// clamps stem from pads only. Returns nullopt if a load could leave its array.
std::optional<Kernel> Unclamped(const Kernel& kernel);

}  // namespace tokamak::gpu
