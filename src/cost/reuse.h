#pragma once

#include <vector>

#include "cost/work.h"
#include "kernel/kernel.h"

namespace tokamak {

// Memory traffic of a kernel: which bytes come from memory, which are cache hits.

// A static load or store of a kernel.
struct ArrayAccess {
  ArrayId array{};
  bool is_store = false;
  double block = 1;  // elements per access
  double run = 1;    // contiguous elements that consecutive iterations access
  // GPU: fraction of each fetched 32-byte sector that the thread block uses.
  double sector_fraction = 1;
  // The enclosing loops, outermost first, with their trip counts, and whether the index depends on
  // them.
  struct Around {
    LoopId loop{};
    double trips = 1;
    bool moves = false;
  };
  std::vector<Around> loops;
};

// Adds reads, writes and rereads to the work of a kernel. Each byte of an array counts once as a
// read or write. A repeated read counts as a reread if the data touched in between exceeds the L1
// cache, by reuse distance.
void AddTraffic(Work& work, const Kernel& kernel, const std::vector<ArrayAccess>& accesses,
                const Machine& machine);

}  // namespace tokamak
