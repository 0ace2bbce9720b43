#pragma once

namespace tokamak {

// Conversion: times of operations are in nanoseconds, those of steps in microseconds (definition).
inline constexpr double kNsPerUs = 1000;
// Microseconds of one launch if a loop is divided into several, so that a run can be cancelled
// between them (docs/loops.md). Chosen: a quarter of a second is soon enough for a person, and long
// compared with a launch.
inline constexpr double kLaunchChunkUs = 250000;

}  // namespace tokamak
