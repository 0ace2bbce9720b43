#pragma once

#include "gen/generator.h"

namespace tokamak::gpu {

// Builds the kernel of a chain of two dots (chain_tiling.h). `schedule` may be null: the first of
// ChainSchedules.
BuildOutcome BuildChain(const FusedRegion& region, const Schedule* schedule, const Machine& machine,
                        const std::string& name);

}  // namespace tokamak::gpu
