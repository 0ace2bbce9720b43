#pragma once

#include <cstdint>

#include "kernel/gpu_limits.h"
#include "kernel/kernel.h"

namespace tokamak {

// Thread-block clusters (sm_90).

// The cluster size: the number of hardware thread blocks that run one block of the kernel IR. It is
// 1 for up to kMaxThreadsPerBlock threads. A larger IR block is a cluster, and its outermost thread
// loop counts the hardware blocks. Shared memory is replicated: a store writes the copies of all
// blocks of the cluster, a read uses the local copy.
int64_t ClusterSizeOf(const Kernel& kernel);

}  // namespace tokamak
