#pragma once

#include <string_view>

#include "cost/rates.h"
#include "cost/work.h"

namespace tokamak {

// What of an SM a kernel's resident thread blocks occupy. GPUs only.
struct Occupancy {
  double blocks = 1;       // resident per SM
  double threads = 0;      // of those blocks, as a fraction of the threads that an SM holds
  std::string_view limit;  // what allows no further block: "threads", "registers", "shared memory",
                           // "blocks"
};
// From threads per block, registers per thread and shared memory per block.
Occupancy OccupancyOf(const Work& work, const Rates& rates);

}  // namespace tokamak
