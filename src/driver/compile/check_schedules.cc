#include "driver/compile/check_schedules.h"

#include "support/near_names.h"

namespace tokamak {
namespace {

Status CheckSchedule(const LoweredProgram& program, const ForcedSchedule& forced,
                     const Machine& machine) {
  std::vector<std::string_view> names;
  bool found = false;
  for (size_t k = 0; k < program.sources.size(); ++k) {
    const KernelSource& source = program.sources[k];
    if (source.schedule) names.push_back(program.kernels[k].name);
    if (program.kernels[k].name != forced.kernel) continue;
    found = true;
    if (source.schedule == forced.schedule) continue;
    BuildOutcome outcome = BuildRegion(source.region, forced.schedule, machine, forced.kernel);
    return MakeError(ErrorCode::kOptionValue,
                     "schedule: '" + ToString(forced.schedule) + "' does not fit kernel '" +
                         ShownWord(forced.kernel) + "': " +
                         (outcome.built ? "its generator is " + std::string(NameOf(source.kind))
                                        : outcome.why_not));
  }
  if (found) return Ok();
  return MakeError(ErrorCode::kOptionValue, "schedule: there is no kernel '" +
                                                ShownWord(forced.kernel) + "'" +
                                                DidYouMean(forced.kernel, names));
}

}  // namespace

Status CheckSchedules(const LoweredProgram& program, const ScheduleOptions& options,
                      const Machine& machine) {
  for (const ForcedSchedule& forced : options.forced)
    TOK_RETURN_IF_ERROR(CheckSchedule(program, forced, machine));
  return Ok();
}

}  // namespace tokamak
