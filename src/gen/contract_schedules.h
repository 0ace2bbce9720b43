#pragma once

#include <string>

#include "gen/contract_regions.h"
#include "gen/contract_tiling.h"
#include "gen/generator.h"

// Schedules of the CPU contract generator: from a schedule to the tilings of a region's dots.
// ContractSchedules (generator.h) lists the candidates.

namespace tokamak {

struct ContractTiling {
  // The dots of a chain. Otherwise only `outer` is set, and row_tiles_per_task is 1.
  ChainTiling dots;
  Schedule schedule;
};

// The tilings of a region for a schedule, or for the preferred one if `schedule` is null. Returns
// why there are none, empty if `tiling` is set.
std::string ExpandSchedule(const FusedRegion& region, const ContractRegions& parts,
                           const Schedule* schedule, const Machine& machine,
                           ContractTiling& tiling);

}  // namespace tokamak
