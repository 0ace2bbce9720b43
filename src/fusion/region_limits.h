#pragma once

// Limits on the size of one kernel. Chosen, not measured: beyond them, compile time is expected to
// grow without a benefit for the run time.

#include <cstddef>
#include <cstdint>
#include <string>

#include "gen/region.h"

namespace tokamak {

inline constexpr size_t kMaxInstrs = 200;
inline constexpr size_t kMaxInputs = 40;  // arrays that the kernel reads
// Operations per element, summed over the instructions, as ops.def counts them.
inline constexpr int64_t kMaxOpsPerElement = 500;

// Why a region exceeds the limits; empty if it does not.
std::string WhyTooLarge(const FusedRegion& region);

}  // namespace tokamak
