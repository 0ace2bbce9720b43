#pragma once

// The user's options for schedules (gen/schedule.h). Without them, the kernels of a plan are built
// with the first schedule that their generators list, and choose_schedules.h compares it with
// others at the end of planning.

#include <string>
#include <string_view>
#include <vector>

#include "gen/region.h"
#include "gen/schedule.h"
#include "support/result.h"

namespace tokamak {

// A schedule that the user chose for the kernel with this name, as explain prints it.
struct ForcedSchedule {
  std::string kernel;
  Schedule schedule;
};

// Which schedules the kernels of a finished plan get, except for forced ones (choose_schedules.h).
enum class ScheduleMode : uint8_t {
  kClearlyCheaper,  // another one than the preferred one if it costs clearly less
  kPreferred,       // the first that the generator lists, without a comparison
  kCheapest,        // the one with the lowest modeled cost, for measurements
};

struct ScheduleOptions {
  // They do not change which kernels the plan has. One that does not fit the kernel of its name is
  // ignored here; the driver reports it (driver/compile/check_schedules.h).
  std::vector<ForcedSchedule> forced = {};
  ScheduleMode mode = ScheduleMode::kClearlyCheaper;
};

// "cheapest", "preferred", or "KERNEL=SCHEDULE" with the text form of a schedule. Returns TK6107.
Status AddScheduleOption(ScheduleOptions& options, std::string_view text);

// The forced schedule of a region's kernel; null if there is none.
const Schedule* ForcedScheduleOf(const FusedRegion& region, const ScheduleOptions& options);

}  // namespace tokamak
