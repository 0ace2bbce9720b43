#pragma once

// Which schedule (gen/schedule.h) the kernel of a region is built with: the one that the user
// forces, else the first that the generator lists, or, on request, the one with the lowest modeled
// cost among the first few.

#include <string>
#include <string_view>
#include <vector>

#include "gen/generator.h"
#include "support/result.h"

namespace tokamak {

// A schedule that the user chose for the kernel with this name, as explain prints it.
struct ForcedSchedule {
  std::string kernel;
  Schedule schedule;
};

struct ScheduleOptions {
  // Plans are compared with the costs of forced schedules: an expensive one can make another plan,
  // without that kernel, the cheapest. One that does not fit the kernel of its name in the chosen
  // plan is ignored here; the driver reports it (driver/compile/check_schedules.h).
  std::vector<ForcedSchedule> forced;
  // Schedules per region whose modeled costs are compared. Chosen: 1 takes the first without a
  // comparison, because each more is a kernel to build and count for every region of the search.
  int64_t candidates = 1;
};

// Schedules per region that are compared for the text "cheapest". Chosen: the lists of the
// generators are not longer than about this.
inline constexpr int64_t kCheapestCandidates = 16;

// "cheapest", or "KERNEL=SCHEDULE" with the text form of a schedule. Returns TK6107.
Status AddScheduleOption(ScheduleOptions& options, std::string_view text);

// The forced schedule of a region's kernel; null if there is none.
const Schedule* ForcedScheduleOf(const FusedRegion& region, const ScheduleOptions& options);

// A kernel, and the number of kernel IR values of all kernels that were built to choose it.
struct ScheduledKernel {
  BuildOutcome outcome;
  size_t build_effort = 0;
};
// Builds the kernel of a region with the schedule that has the lowest modeled cost among the first
// `candidates`; equal costs keep the order of the generator.
ScheduledKernel BuildCheapest(const FusedRegion& region, GeneratorKind kind, const Machine& machine,
                              int64_t candidates);

}  // namespace tokamak
