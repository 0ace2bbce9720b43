// The schedules that the slowest kernels could have had, each built and its cost estimated as the
// planner does it (fusion/choose_schedules.h).

#include <set>

#include <nlohmann/json.hpp>

#include "cost/work.h"
#include "driver/report/page_data.h"
#include "driver/report/slowest_steps.h"
#include "gen/generator.h"

namespace tokamak {
namespace {

using nlohmann::json;

// Different kernels with alternatives in a page, schedules of each that are built, and kernel IR
// values of all. Chosen: 1000 values take 2 ms (fusion/plan.h), so that a page takes 0.2 s.
constexpr size_t kMostEstimatedKernels = 16, kMostEstimatedSchedules = 8,
                 kMostEstimatedValues = 100'000;

double CostOfBuilt(const BuiltKernel& built, const Machine& machine) {
  return EstimateCost(WorkOf(built.kernel, built.grid, machine), machine).total();
}

// Schedules in the order of the generator's list, the chosen one among them.
json SchedulesOf(const KernelSource& source, const std::string& name, const Machine& machine,
                 size_t& values) {
  json list = json::array();
  std::vector<Schedule> all = Schedules(source.region, source.kind, machine);
  if (all.size() < 2) return list;
  for (size_t i = 0; i < all.size() && list.size() < kMostEstimatedSchedules; ++i) {
    bool is_chosen = all[i] == source.schedule;
    BuildOutcome outcome = BuildRegion(source.region, all[i], machine, name);
    json entry = {{"schedule", ToString(all[i])}, {"chosen", is_chosen}, {"place", i + 1}};
    if (outcome.built) {
      values += outcome.built->kernel.nodes.size();
      entry["predicted_us"] = CostOfBuilt(*outcome.built, machine);
    } else {
      entry["rejected"] = outcome.why_not;
    }
    list.push_back(std::move(entry));
  }
  return list;
}

}  // namespace

json AlternativesOf(const CompileReport& report) {
  json alternatives = json::object();
  std::set<uint64_t> seen;
  size_t values = 0;
  for (size_t i : SlowestKernelSteps(report)) {
    const StepReport& step = report.steps[i];
    if (step.kernels.size() != 1 || step.schedule.empty()) continue;
    if (!seen.insert(step.code).second) continue;
    if (alternatives.size() == kMostEstimatedKernels || values > kMostEstimatedValues) break;
    size_t kernel = step.kernels[0];
    json list = SchedulesOf(report.program().sources[kernel], report.program().kernels[kernel].name,
                            report.machine(), values);
    if (!list.empty()) alternatives[std::to_string(i)] = std::move(list);
  }
  return alternatives;
}

}  // namespace tokamak
