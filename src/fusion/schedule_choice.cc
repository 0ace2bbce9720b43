#include "fusion/schedule_choice.h"

#include <algorithm>

#include "fusion/make_region.h"

namespace tokamak {

Status AddScheduleOption(ScheduleOptions& options, std::string_view text) {
  if (text == "cheapest" || text == "preferred") {
    options.mode = text == "cheapest" ? ScheduleMode::kCheapest : ScheduleMode::kPreferred;
    return Ok();
  }
  size_t equals = text.find('=');
  if (equals == 0 || equals == std::string_view::npos)
    return MakeError(ErrorCode::kOptionValue,
                     "schedule: expected 'cheapest', 'preferred' or KERNEL=SCHEDULE, such as "
                     "'y=contract tile=64x64x16 ...' (tokamak explain prints the schedules of "
                     "kernels)");
  TOK_TRY(Schedule schedule, ParseSchedule(text.substr(equals + 1)));
  options.forced.push_back({std::string(text.substr(0, equals)), schedule});
  return Ok();
}

const Schedule* ForcedScheduleOf(const FusedRegion& region, const ScheduleOptions& options) {
  if (options.forced.empty()) return nullptr;
  std::string name = KernelNameOf(region);
  auto found = std::find_if(options.forced.begin(), options.forced.end(),
                            [&](const ForcedSchedule& forced) { return forced.kernel == name; });
  return found == options.forced.end() ? nullptr : &found->schedule;
}

}  // namespace tokamak
