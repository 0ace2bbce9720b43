#pragma once

namespace tokamak {

// Conversion: times of operations are in nanoseconds, those of steps in microseconds (definition).
inline constexpr double kNsPerUs = 1000;

}  // namespace tokamak
