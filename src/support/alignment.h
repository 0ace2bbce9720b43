#pragma once

#include <cstdint>

namespace tokamak {

// Bytes: arrays in memory begin at multiples of it. Of the hardware: a cache line, and the widest
// vector of a CPU (AVX-512).
inline constexpr int64_t kArrayAlignment = 64;

}  // namespace tokamak
