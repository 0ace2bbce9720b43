#pragma once

#include <array>
#include <cstdint>

namespace tokamak {

// The counter-based generators of Salmon et al., "Parallel random numbers: as
// easy as 1, 2, 3" (SC 2011).
std::array<uint32_t, 2> ThreeFry2x32(std::array<uint32_t, 2> counter, std::array<uint32_t, 2> key);
std::array<uint32_t, 4> Philox4x32(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key);

}  // namespace tokamak
