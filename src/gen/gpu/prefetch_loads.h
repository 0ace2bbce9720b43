#pragma once

#include "kernel/kernel.h"

// Software pipelining of GPU loops with barriers.

namespace tokamak::gpu {

// Prefetches loads one iteration ahead in loops with a block barrier. Such a block has nothing to
// overlap memory latency with. Loads whose addresses depend only on the iteration are issued one
// iteration early, just before the barrier, into registers.
void PrefetchLoads(Kernel& kernel);

}  // namespace tokamak::gpu
