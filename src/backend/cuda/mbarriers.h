#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "kernel/kernel.h"

namespace tokamak::cuda {

// Cluster synchronization by mbarriers in place of barrier.cluster. Stores go to the shared memory
// of all blocks of the cluster (st.async), and each block waits until its mbarrier has counted the
// bytes stored by all. The count alone orders writes before reads.
//
// The opposite order, that no block overwrites what another still reads, holds if every warp first
// reads and then stores between two sync points: a block that has received all bytes of the later
// sync point knows that every warp has finished reading what the earlier one published.
struct MbarrierPlan {
  LoopId loop{};  // all stores and sync points are statements of its body
  // Per sync point of an iteration: the bytes that a block receives before it.
  std::vector<int64_t> bytes;
  // Stores and barriers, to the number of their sync point.
  std::map<const Stmt*, size_t> sync_points;
  std::set<const Stmt*> sending;  // statements of the body that are or contain such stores
};
// Empty if the kernel needs cluster barriers.
std::optional<MbarrierPlan> MbarrierPlanOf(const Kernel& kernel);

}  // namespace tokamak::cuda
