#pragma once

// Schedules with bulk copies (Staging::kBulk) for the contractions of a compiled program.

#include <vector>

#include "driver/compile/compilation.h"
#include "fusion/schedule_choice.h"

namespace tokamak::fuzz {

// One for each kernel that has such schedules: small tiles, which have edges in small programs and
// which the simulator runs fast. The extents of the kernel's arguments choose it.
std::vector<ForcedSchedule> BulkSchedules(const Compilation& compilation);
bool HasBulkSchedule(const Compilation& compilation);

}  // namespace tokamak::fuzz
