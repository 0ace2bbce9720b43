#pragma once

#include <span>

#include "backend/cuda/gpu.h"
#include "kernel/simulate.h"

// Launches in the checked simulator. Pointers are addresses of the host.

namespace tokamak::cuda {

Result<SimReport> SimulateTogether(std::span<const Kernel> kernels,
                                   std::span<void* const> pointers);

// Rounds of a loop. What its teams do between two meetings is one launch, so that the simulator
// finds what needs a meeting that is not there.
Result<LoopEnd> SimulateLoop(const LoopShape& shape, std::span<const Kernel> kernels,
                             std::span<void* const> pointers, const LoopTurn& turn);

}  // namespace tokamak::cuda
