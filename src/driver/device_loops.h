#pragma once

#include <optional>
#include <vector>

#include "backend/cuda/gpu.h"
#include "lower/lower.h"
#include "runtime/steps.h"

namespace tokamak {

// A loop of steps as one launch, with the places of its pointers.
struct LoopLaunch {
  cuda::LaunchForm form;
  std::vector<Place> places;
};

// How often a loop of the program runs, when that is known.
std::optional<uint64_t> RoundsOf(const RunStep& loop, const LoweredProgram& program);

// Of a loop that was chosen (LoweredProgram::persistent), whose places may take turns.
LoopLaunch LoopLaunchOf(const RunStep& loop, const LoweredProgram& program);

// Whether a copy reads what the one before it makes, or writes over what that reads.
bool MustFollow(const RunStep& copy, const RunStep& before);

// The places of a loop's first round when a copy before the loop, of the first value of what it
// carries, is left out: the round reads it where it was. Nothing where something else needs it.
std::optional<std::vector<Place>> WithoutCopy(const RunStep& loop, const LoweredProgram& program,
                                              const std::vector<Place>& places,
                                              const RunStep& copy);

}  // namespace tokamak
