#pragma once

#include <optional>
#include <vector>

#include "backend/cuda/gpu.h"
#include "lower/lower.h"
#include "runtime/steps.h"

namespace tokamak {

// A loop of steps as one launch, with the buffer slices that its pointer arguments refer to.
struct LoopLaunch {
  cuda::LaunchForm form;
  std::vector<BufferSlice> slices;
};

// The trip count of a loop of the program, if it is known at compile time.
std::optional<uint64_t> TripCountOf(const RunStep& loop, const LoweredProgram& program);

// The launch of a loop chosen as a persistent kernel (LoweredProgram::persistent). Its slices may
// alternate between iterations (double buffering).
LoopLaunch LoopLaunchOf(const RunStep& loop, const LoweredProgram& program);

// Whether a copy reads what the preceding copy writes, or overwrites what that one reads.
bool MustFollow(const RunStep& copy, const RunStep& before);

// Eliminates a copy before a loop that initializes a carried value: the first iteration reads the
// value from the source of the copy. Returns the slices of the first iteration, or nullopt if
// another step needs the copy.
std::optional<std::vector<BufferSlice>> WithoutCopy(const RunStep& loop,
                                                    const LoweredProgram& program,
                                                    const std::vector<BufferSlice>& slices,
                                                    const RunStep& copy);

}  // namespace tokamak
