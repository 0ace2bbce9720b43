#pragma once

#include <optional>
#include <unordered_map>

#include "cost/work.h"
#include "explain/decision.h"
#include "fusion/kernel_cache.h"
#include "fusion/plan.h"
#include "fusion/schedule_choice.h"

namespace tokamak {

// The fraction of the modeled cost of the preferred schedule that another one must save to replace
// it, so that a close call keeps the preferred schedule. Measured (docs/results/schedules.md):
// below it, as many kernels become slower as faster.
inline constexpr double kScheduleMargin = 0.1;
// Whether the model predicts which schedule of this generator is the fastest. Measured
// (docs/results/schedules.md): on an H200 it does for contractions and columns; not for rows (it
// overestimates what few warps per SM cost), nor for loops (it underestimates strided accesses). On
// CPUs it has not been measured.
bool IsPredictable(GeneratorKind kind, bool is_gpu);

// Whether kernels of the two schedules, of one region, multiply in the same precision: a dot of f32
// with split_k does not use TF32.
bool HasSamePrecision(const Schedule& x, const Schedule& y);

// What has been compared for the kernels of equal regions.
struct ScheduleComparison {
  CostEstimate preferred;
  double least_us = 0;  // of any schedule
  // The cheapest other schedule, its cost, and how many were compared; nullopt: none yet.
  struct Cheapest {
    Schedule schedule;
    double us = 0;
    size_t compared = 0;
  };
  std::optional<Cheapest> cheapest = {};
};
// By the exact hash of the region. Plans of one computation share them.
using ScheduleComparisons = std::unordered_map<uint64_t, ScheduleComparison>;

// The last step of planning: builds kernels with the schedules that the user forces on them, if
// these fit. For all others it compares the modeled cost of the first schedules (gen/schedule.h)
// with that of the preferred one, and builds the kernel again with the cheapest if that saves more
// than the margin. Equal regions share one comparison, and log one decision.
//
// Unless the mode is kCheapest, these kernels are not compared:
// - those whose cost is no guide (IsPredictable),
// - those whose launch takes most of their time,
// - those that take little more than their memory traffic,
// - those that remain when the budget of built kernel IR is spent.
// The choice depends only on the plan and the rates of the machine. It never changes the precision
// of a dot (HasSamePrecision), but may change the order in which a kernel adds. Returns the modeled
// microseconds that it saves.
double ChooseSchedules(ComputationPlan& plan, const ScheduleOptions& options,
                       KernelCache& kernel_cache, ScheduleComparisons& comparisons,
                       DecisionLog& log);

}  // namespace tokamak
