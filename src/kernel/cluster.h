#pragma once

#include <cstdint>

#include "kernel/kernel.h"

namespace tokamak {

// Threads that one block of a GPU has at most, and blocks that may run one team.
inline constexpr int64_t kMostBlockThreads = 1024, kMostBlocks = 16;

// The blocks that run a team: a team of more threads than a block has is a cluster, and its
// outermost thread loop counts the blocks. Each block has a copy of team memory: what is stored
// goes to all copies, what is read comes from the block's own.
int64_t ClusterOf(const Kernel& kernel);

}  // namespace tokamak
