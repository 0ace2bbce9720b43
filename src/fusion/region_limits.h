#pragma once

// Limits on the size of one kernel.

#include <cstddef>
#include <cstdint>
#include <string>

#include "gen/region.h"

namespace tokamak {

// Instructions, arrays that the kernel reads, and operations per element, which are summed over the
// instructions as ops.def counts them. Chosen: beyond them, compile time is expected to grow
// without a benefit for the run time.
inline constexpr size_t kMaxInstrs = 200, kMaxInputs = 40;
inline constexpr int64_t kMaxOpsPerElement = 500;

// Why a region exceeds the limits; empty if it does not.
std::string WhyTooLarge(const FusedRegion& region);

}  // namespace tokamak
