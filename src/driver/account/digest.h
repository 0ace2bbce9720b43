#pragma once

#include <cstdint>
#include <span>

#include "kernel/kernel.h"
#include "runtime/matrix_product.h"

// What identifies the work that is issued, in accounts and in recordings of runs.

namespace tokamak {

// A kernel and the number of its blocks.
uint64_t LaunchDigest(const Kernel& kernel, int64_t grid);
uint64_t ProductDigest(const ProductCall& call);
// Of a launch of several kernels.
uint64_t DigestOf(std::span<const uint64_t> launches);

}  // namespace tokamak
