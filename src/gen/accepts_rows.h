#pragma once

#include <cstdint>

#include "cost/machine.h"
#include "gen/region.h"

// Fast checks whether a generator accepts a region, without generating code: the planner asks about
// hundreds of candidate regions.

namespace tokamak {

// kAskByBuilding: only generating the kernel tells.
enum class Accepts : uint8_t { kYes, kNo, kAskByBuilding };

// Whether BuildRows accepts a region.
Accepts AcceptsRows(const FusedRegion& region);
// Whether BuildContract accepts a region, on a CPU.
Accepts AcceptsContract(const FusedRegion& region, const Machine& machine);

}  // namespace tokamak
