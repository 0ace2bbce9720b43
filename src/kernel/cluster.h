#pragma once

#include <cstdint>

#include "kernel/kernel.h"

namespace tokamak {

// Thread-block clusters (sm_90).

// Hardware limits: threads per thread block, and thread blocks per cluster with the non-portable
// size (CUDA programming guide).
inline constexpr int64_t kMaxThreadsPerBlock = 1024, kMaxClusterBlocks = 16;

// The cluster size: the number of hardware thread blocks that run one block of the kernel IR. It is
// 1 for up to kMaxThreadsPerBlock threads. A larger IR block is a cluster, and its outermost thread
// loop counts the hardware blocks. Shared memory is replicated: a store writes the copies of all
// blocks of the cluster, a read uses the local copy.
int64_t ClusterSizeOf(const Kernel& kernel);

}  // namespace tokamak
