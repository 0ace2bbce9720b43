#pragma once

#include "gen/generator.h"
#include "gen/gpu/tensor_tiling.h"

namespace tokamak::gpu {

// Builds the kernel of a dot that warpgroups compute with asynchronous multiplies, and of the
// elementwise consumers of its results. `dot` is the single dot of the region.
BuildOutcome BuildTensorContract(const FusedRegion& region, const Instr& dot,
                                 const TensorTiling& tiling, const std::string& name);

}  // namespace tokamak::gpu
