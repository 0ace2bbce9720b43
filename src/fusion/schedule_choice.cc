#include "fusion/schedule_choice.h"

#include <algorithm>
#include <limits>

#include "cost/work.h"
#include "fusion/make_region.h"

namespace tokamak {
namespace {

constexpr std::string_view kCheapest = "cheapest";

size_t ValuesOf(const BuildOutcome& outcome, const FusedRegion& region) {
  return outcome.built ? outcome.built->kernel.nodes.size() : region.instrs.size();
}

}  // namespace

Status AddScheduleOption(ScheduleOptions& options, std::string_view text) {
  if (text == kCheapest) {
    options.candidates = kCheapestCandidates;
    return Ok();
  }
  size_t equals = text.find('=');
  if (equals == 0 || equals == std::string_view::npos)
    return MakeError(ErrorCode::kOptionValue,
                     "schedule: expected 'cheapest' or KERNEL=SCHEDULE, such as 'y=contract "
                     "tile=64x64x16 ...' (tokamak explain prints the schedules of kernels)");
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

ScheduledKernel BuildCheapest(const FusedRegion& region, GeneratorKind kind, const Machine& machine,
                              int64_t candidates) {
  ScheduledKernel best{BuildRegion(region, kind, machine, "probe")};
  best.build_effort = ValuesOf(best.outcome, region);
  if (candidates <= 1 || !best.outcome.built || !best.outcome.built->schedule) return best;
  auto cost_of = [&](const BuiltKernel& built) {
    return EstimateCost(WorkOf(built.kernel, built.grid, machine), machine).total();
  };
  double lowest = cost_of(*best.outcome.built);
  std::vector<Schedule> all = Schedules(region, kind, machine);
  size_t count = std::min(all.size(), static_cast<size_t>(candidates));
  for (size_t i = 1; i < count; ++i) {
    BuildOutcome next = BuildRegion(region, all[i], machine, "probe");
    best.build_effort += ValuesOf(next, region);
    if (!next.built) continue;
    double cost = cost_of(*next.built);
    if (cost >= lowest) continue;
    lowest = cost;
    best.outcome = std::move(next);
  }
  return best;
}

}  // namespace tokamak
