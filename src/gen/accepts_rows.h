#pragma once

#include <cstdint>

#include "cost/machine.h"
#include "gen/region.h"

namespace tokamak {

// What is known of a region without a kernel of it.
enum class Accepts : uint8_t { kYes, kNo, kAskByBuilding };

// Whether BuildRows takes a region. A planner asks this of hundreds, and emits no code for it.
Accepts AcceptsRows(const Region& region);
// The same of BuildContract, on a CPU.
Accepts AcceptsContract(const Region& region, const Machine& machine);

}  // namespace tokamak
