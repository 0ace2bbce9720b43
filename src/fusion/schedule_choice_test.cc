#include "fusion/schedule_choice.h"

#include <map>

#include <gtest/gtest.h>

#include "cost/work.h"
#include "fusion/choose_schedules.h"
#include "ir/builder.h"

namespace tokamak {
namespace {

// Two equal products.
struct TwoDots {
  Module module{"m"};
  Builder b{module, "main"};
  Instr* x = b.Parameter(Shape::Array(ElementType::kF32, {800, 480}));
  Instr* w = b.Parameter(Shape::Array(ElementType::kF32, {480, 400}));
  Instr *first = Dot("first"), *second = Dot("second");

  TwoDots() { EXPECT_TRUE(b.Finish(b.Tuple({first, second})).ok()); }

  Instr* Dot(const std::string& name) {
    DotAttrs attrs;
    attrs.lhs_contracting = {1};
    attrs.rhs_contracting = {0};
    Instr* dot = b.Dot(x, w, attrs);
    dot->set_name(name);
    return dot;
  }

  FusedRegion RegionOf(const Instr* dot) const {
    return {.computation = dot->parent(), .instrs = {dot}, .inputs = {x, w}, .roots = {dot}};
  }
};

TEST(ScheduleChoice, OptionsAreRead) {
  ScheduleOptions options;
  EXPECT_TRUE(AddScheduleOption(options, "cheapest").ok());
  EXPECT_EQ(options.mode, ScheduleMode::kCheapest);
  EXPECT_TRUE(AddScheduleOption(options, "preferred").ok());
  EXPECT_EQ(options.mode, ScheduleMode::kPreferred);
  EXPECT_TRUE(AddScheduleOption(options, "y=contract tile=8x4x2").ok());
  ASSERT_EQ(options.forced.size(), 1u);
  EXPECT_EQ(options.forced[0].kernel, "y");
  EXPECT_EQ(options.forced[0].schedule.tile_rows, 8);
  for (const char* text : {"", "best", "=contract tile=8x4x2", "y=", "y=contract tile=8"})
    EXPECT_FALSE(AddScheduleOption(options, text).ok()) << text;
}

// The plan of two equal products that are large enough to be worth a comparison.
struct PlannedDots {
  TwoDots dots;
  DecisionLog log;
  ComputationPlan plan{*dots.first->parent()};

  PlannedDots(const Machine& machine, ScheduleMode mode)
      : plan(PlanComputation(*dots.first->parent(), machine, {.schedules = {.mode = mode}}, log)) {}

  double Us(const Machine& machine) const {
    double us = 0;
    for (const PlannedKernel& planned : plan.kernels)
      us +=
          EstimateCost(WorkOf(planned.built.kernel, planned.built.grid, machine), machine).total();
    return us;
  }
  // The decision about the schedules of the dots; null if they were not compared.
  const Decision* Record() const {
    const Decision* found = nullptr;
    for (const Decision& decision : log.all())
      if (decision.rule == "schedule.cheaper") {
        EXPECT_EQ(found, nullptr) << "equal kernels share a comparison";
        found = &decision;
      }
    return found;
  }
};

const Machine kScheduleMachines[] = {{.vector_bits = 256, .cores = 16}, GpuMachine()};

TEST(ScheduleChoice, TheCheapestCostsLeast) {
  for (const Machine& machine : kScheduleMachines) {
    PlannedDots preferred(machine, ScheduleMode::kPreferred),
        cheapest(machine, ScheduleMode::kCheapest);
    EXPECT_EQ(preferred.Record(), nullptr);
    ASSERT_NE(cheapest.Record(), nullptr);
    EXPECT_LE(cheapest.Us(machine), preferred.Us(machine));
    for (const PlannedKernel& planned : preferred.plan.kernels)
      EXPECT_EQ(planned.built.schedule, Schedules(planned.region, planned.kind, machine)[0]);
    for (const PlannedKernel& planned : cheapest.plan.kernels) {
      double us =
          EstimateCost(WorkOf(planned.built.kernel, planned.built.grid, machine), machine).total();
      for (const Schedule& schedule : Schedules(planned.region, planned.kind, machine)) {
        BuildOutcome other = BuildRegion(planned.region, schedule, machine, "k");
        if (!other.built || !HasSamePrecision(schedule, *planned.built.schedule)) continue;
        EXPECT_LE(
            us,
            EstimateCost(WorkOf(other.built->kernel, other.built->grid, machine), machine).total())
            << ToString(schedule);
      }
    }
  }
}

// A schedule is replaced only if another one saves more than the margin, and the record says so.
TEST(ScheduleChoice, ACloseCallKeepsThePreferredSchedule) {
  for (const Machine& machine : kScheduleMachines) {
    PlannedDots preferred(machine, ScheduleMode::kPreferred),
        chosen(machine, ScheduleMode::kClearlyCheaper);
    const Decision* record = chosen.Record();
    bool accepted = record != nullptr && record->verdict == Verdict::kAccepted;
    for (size_t k = 0; k < chosen.plan.kernels.size(); ++k)
      EXPECT_EQ(chosen.plan.kernels[k].built.schedule != preferred.plan.kernels[k].built.schedule,
                accepted);
    if (!IsPredictable(GeneratorKind::kContract, machine.is_gpu())) {
      EXPECT_EQ(record, nullptr);
    } else if (record != nullptr) {
      EXPECT_EQ(record->after_us < (1 - kScheduleMargin) * record->before_us, accepted);
    }
  }
}

// Schedules of the kernels of an unfused plan, by name.
std::map<std::string, Schedule> SchedulesOf(const TwoDots& dots, const ScheduleOptions& options) {
  DecisionLog log;
  ComputationPlan plan = PlanComputation(*dots.first->parent(), kScheduleMachines[0],
                                         {.mode = FusionMode::kNone, .schedules = options}, log);
  std::map<std::string, Schedule> schedules;
  for (const PlannedKernel& planned : plan.kernels)
    schedules[planned.built.kernel.name] = planned.built.schedule.value();
  return schedules;
}

// A forced schedule applies to the kernel that it names, and not to another with an equal region.
TEST(ScheduleChoice, AForcedScheduleIsOfOneKernel) {
  TwoDots dots;
  std::vector<Schedule> all =
      Schedules(dots.RegionOf(dots.first), GeneratorKind::kContract, kScheduleMachines[0]);
  ASSERT_GE(all.size(), 2u);
  for (ScheduleMode mode : {ScheduleMode::kPreferred, ScheduleMode::kCheapest}) {
    std::map<std::string, Schedule> free = SchedulesOf(dots, {.mode = mode}),
                                    forced = SchedulesOf(dots, {{{"second", all.back()}}, mode});
    EXPECT_EQ(forced["first"], free["first"]);
    EXPECT_EQ(forced["second"], all.back());
  }
}

TEST(ScheduleChoice, AMisfitIsNotUsed) {
  TwoDots dots;
  Schedule misfit{.tile_rows = 1000};
  EXPECT_NE(SchedulesOf(dots, {.forced = {{"first", misfit}}})["first"], misfit);
}

}  // namespace
}  // namespace tokamak
