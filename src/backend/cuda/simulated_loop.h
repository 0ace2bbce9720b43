#pragma once

#include <span>

#include "backend/cuda/gpu.h"
#include "kernel/simulate.h"

// Launches of the simulated GPU in the checked simulator. Pointers are host addresses.

namespace tokamak::cuda {

Result<SimReport> SimulateTogether(std::span<const Kernel> kernels,
                                   std::span<void* const> pointers);

// Runs iterations of a loop kernel. The phases between two grid barriers are one simulated launch,
// so the simulator's race detection finds missing barriers.
Result<LoopEnd> SimulateLoop(const LoopShape& shape, std::span<const Kernel> kernels,
                             std::span<void* const> pointers, const LoopChunk& chunk);

}  // namespace tokamak::cuda
