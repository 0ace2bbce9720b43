#pragma once

#include <vector>

#include "cost/work.h"
#include "kernel/kernel.h"

namespace tokamak {

// A place of a kernel where elements of an array are read or written.
struct ArrayAccess {
  ArrayId array{};
  bool is_store = false;
  double block = 1;         // elements at a time
  double run = 1;           // elements that lie side by side and are met one after the other
  double sector_share = 1;  // of what a GPU's memory gives for it, what the team makes use of
  // The loops around it, outermost first, with their rounds, and whether the place depends on them.
  struct Around {
    LoopId loop{};
    double trips = 1;
    bool moves = false;
  };
  std::vector<Around> loops;
};

// Adds reads, writes and what is read again to a kernel's work. Bytes count once as long as an
// array has them; those that are read again count as such when so many others are read in between
// that they have left the first cache.
void AddTraffic(Work& work, const Kernel& kernel, const std::vector<ArrayAccess>& accesses,
                const Machine& machine);

}  // namespace tokamak
