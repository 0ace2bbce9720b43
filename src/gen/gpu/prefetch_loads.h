#pragma once

#include "kernel/kernel.h"

// Software pipelining of GPU loops with barriers.

namespace tokamak::gpu {

// Prefetches loads one iteration ahead in the first serial loop with a block barrier. All warps of
// a thread block wait at the barrier, so only other thread blocks on the SM could hide the latency
// of loads. Loads whose index depends only on loop variables and constants are issued one iteration
// early, just before the barrier, into registers. The last iteration prefetches its own elements
// again; only loads that are in bounds in all iterations are moved. Used for the distributed
// whole-loop kernels; contract kernels build their own pipeline (contract_tiling.h).
void PrefetchLoads(Kernel& kernel);

}  // namespace tokamak::gpu
