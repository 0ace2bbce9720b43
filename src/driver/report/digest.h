#pragma once

#include <cstdint>
#include <span>

#include "kernel/kernel.h"
#include "runtime/matrix_product.h"

// Digests that identify issued work in compile reports and in recordings of runs.

namespace tokamak {

// Digest of a kernel and its number of blocks.
uint64_t LaunchDigest(const Kernel& kernel, int64_t grid);
uint64_t ProductDigest(const ProductCall& call);
// Digest of a launch of several kernels.
uint64_t DigestOf(std::span<const uint64_t> launches);

}  // namespace tokamak
