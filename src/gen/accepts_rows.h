#pragma once

#include <cstdint>

#include "cost/machine.h"
#include "gen/region.h"

// Fast checks whether a CPU generator accepts a region, without generating code: the planner asks
// about hundreds of candidate regions. On GPUs it builds the kernel of a row reduction or
// contraction to find out.

namespace tokamak {

// kUnknown: only generating the kernel tells.
enum class Accepts : uint8_t { kYes, kNo, kUnknown };

// Whether BuildRows accepts a region, on any CPU.
Accepts AcceptsRows(const FusedRegion& region);
// Whether BuildContract accepts a region, on this CPU.
Accepts AcceptsContract(const FusedRegion& region, const Machine& machine);

}  // namespace tokamak
