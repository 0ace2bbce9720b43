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

}  // namespace tokamak
