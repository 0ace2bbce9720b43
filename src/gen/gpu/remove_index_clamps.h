#pragma once

#include <optional>

#include "kernel/kernel.h"

// Removal of index clamps in stencil kernels, so that their loads can be vectorized.

namespace tokamak::gpu {

// Returns the kernel without the clamps max(index, 0) and min(max(index, 0), last). In the padding
// of a pad the index then runs past the row instead of being clamped; it stays in the array, and
// the loaded value is discarded by the pad's select. Every index is then affine in the element's
// index, which vector accesses need. The caller must only pass kernels of regions whose clamps all
// stem from pads, not from dynamic indices (IsStencil in loop.cc). Returns nullopt if a load could
// leave its array, or nothing is clamped.
std::optional<Kernel> RemoveIndexClamps(const Kernel& kernel);

}  // namespace tokamak::gpu
