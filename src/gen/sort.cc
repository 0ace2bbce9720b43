// The sort generator: the kernel of the cheapest schedule (sort_schedule.h).

#include <algorithm>

#include "gen/generator.h"
#include "gen/sort_schedule.h"

namespace tokamak {
namespace {

// Whether the kernel of a schedule loads each element once, so that elementwise producers of its
// operands may be fused into it. Merge sorts load elements more than once.
bool LoadsOnce(const SortSchedule& schedule) {
  return schedule.method != SortMethod::kMerge;
}

FusedRegion RegionOf(const Instr& sort) {
  return {.instrs = {&sort}, .inputs = InputsOf({&sort}), .roots = {&sort}};
}

}  // namespace

std::optional<std::string> WhyNoSortKernel(const Instr& sort, const Machine& machine) {
  if (!SortKernelSchedules(RegionOf(sort), machine).empty()) return std::nullopt;
  if (std::optional<std::string> why = WhyNoComparatorCode(sort)) return why;
  return machine.is_gpu()
             ? "sort: a line exceeds shared memory"
             : "sort: a line exceeds the registers, and the comparator is not an order of keys";
}

bool CanFuseProducers(const Instr& sort, const Machine& machine) {
  if (!machine.is_gpu()) return false;
  std::vector<SortSchedule> schedules = SortKernelSchedules(RegionOf(sort), machine);
  return !schedules.empty() && LoadsOnce(CheapestOf(schedules, SizeOf(sort), machine));
}

bool IsSortWithProducers(const FusedRegion& region, const Machine& machine) {
  if (region.roots.size() != 1 || region.roots[0]->op() != Op::kSort ||
      !CanFuseProducers(*region.roots[0], machine))
    return false;
  return std::none_of(region.instrs.begin(), region.instrs.end(), [&](const Instr* instr) {
    return instr != region.roots[0] && WhyNoElementCode(*instr).has_value();
  });
}

BuildOutcome BuildSort(const FusedRegion& region, const SortSchedule& schedule,
                       const Machine& machine, const std::string& name) {
  switch (schedule.method) {
    case SortMethod::kNetwork:
      return BuildNetworkSort(region, schedule, machine, name);
    case SortMethod::kMerge:
      return BuildMergeSort(region, schedule, machine, name);
    case SortMethod::kRadix:
      return BuildRadixSort(region, schedule, name);
  }
  return {std::nullopt, "sort: no such method"};
}

BuildOutcome BuildSort(const FusedRegion& region, const Machine& machine, const std::string& name) {
  if (region.roots.size() != 1 ||
      (region.instrs.size() != 1 && !IsSortWithProducers(region, machine)))
    return {std::nullopt, "a sort is not fused with other instructions"};
  std::vector<SortSchedule> schedules = SortKernelSchedules(region, machine);
  if (schedules.empty()) return {std::nullopt, *WhyNoSortKernel(*region.roots[0], machine)};
  SortSchedule cheapest = CheapestOf(schedules, SizeOf(*region.roots[0]), machine);
  return BuildSort(region, cheapest, machine, name);
}

}  // namespace tokamak
