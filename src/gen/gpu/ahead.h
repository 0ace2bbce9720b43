#pragma once

#include "kernel/kernel.h"

namespace tokamak::gpu {

// Memory takes long, and a team that meets in every round of a loop has nothing else to do
// meanwhile: what a round loads, wherever that is known from its number alone, is asked for in the
// round before, right before the threads meet, and held in registers.
void LoadAhead(Kernel& kernel);

}  // namespace tokamak::gpu
