#include "kernel/cluster.h"

namespace tokamak {

int64_t ClusterSizeOf(const Kernel& kernel) {
  int64_t threads = 1, outermost = 0;
  const StmtList* at = &kernel.body;
  while (at->size() == 1 && (*at)[0].kind == StmtKind::kFor) {
    const Loop& loop = kernel.loop((*at)[0].loop);
    if (loop.role != LoopRole::kGrid && loop.role != LoopRole::kThread) break;
    if (loop.role == LoopRole::kThread) {
      int64_t extent = IntOfBits(ScalarType::kIndex, kernel.node(loop.extent).bits);
      if (outermost == 0) outermost = extent;
      threads *= extent;
    }
    at = &(*at)[0].body;
  }
  return threads > kMaxThreadsPerBlock ? outermost : 1;
}

}  // namespace tokamak
