#include "fusion/schedule_choice.h"

#include <gtest/gtest.h>

#include "cost/work.h"
#include "fusion/kernel_cache.h"
#include "ir/builder.h"

namespace tokamak {
namespace {

// Two equal products.
struct TwoDots {
  Module module{"m"};
  Builder b{module, "main"};
  Instr* x = b.Parameter(Shape::Array(ElementType::kF32, {200, 120}));
  Instr* w = b.Parameter(Shape::Array(ElementType::kF32, {120, 100}));
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
  EXPECT_EQ(options.candidates, kCheapestCandidates);
  EXPECT_TRUE(AddScheduleOption(options, "y=contract tile=8x4x2").ok());
  ASSERT_EQ(options.forced.size(), 1u);
  EXPECT_EQ(options.forced[0].kernel, "y");
  EXPECT_EQ(options.forced[0].schedule.tile_rows, 8);
  for (const char* text : {"", "best", "=contract tile=8x4x2", "y=", "y=contract tile=8"})
    EXPECT_FALSE(AddScheduleOption(options, text).ok()) << text;
}

// A forced schedule applies to the kernel that it names, and not to another with an equal region.
TEST(ScheduleChoice, AForcedScheduleIsOfOneKernel) {
  TwoDots dots;
  Machine machine{.vector_bits = 256};
  std::vector<Schedule> all =
      Schedules(dots.RegionOf(dots.first), GeneratorKind::kContract, machine);
  ASSERT_GE(all.size(), 2u);
  KernelCache kernel_cache(*dots.first->parent(), machine, {.forced = {{"second", all[1]}}});
  auto schedule_of = [&](const Instr* dot) {
    return kernel_cache.BuildOrGet(dots.RegionOf(dot), GeneratorKind::kContract)
        ->outcome.built->schedule;
  };
  EXPECT_EQ(schedule_of(dots.first), all[0]);
  EXPECT_EQ(schedule_of(dots.second), all[1]);
  EXPECT_EQ(schedule_of(dots.first), all[0]);
}

TEST(ScheduleChoice, AMisfitIsNotUsed) {
  TwoDots dots;
  Machine machine{.vector_bits = 256};
  Schedule misfit{.tile_rows = 1000};
  KernelCache kernel_cache(*dots.first->parent(), machine, {.forced = {{"first", misfit}}});
  BuildOutcome outcome =
      kernel_cache.BuildOrGet(dots.RegionOf(dots.first), GeneratorKind::kContract)->outcome;
  ASSERT_TRUE(outcome.built.has_value());
  EXPECT_NE(outcome.built->schedule, misfit);
}

TEST(ScheduleChoice, TheCheapestCostsAtMostThePreferredOne) {
  TwoDots dots;
  FusedRegion region = dots.RegionOf(dots.first);
  for (const Machine& machine : {Machine{.vector_bits = 256, .cores = 16}, GpuMachine()}) {
    auto cost_of = [&](const ScheduledKernel& kernel) {
      const BuiltKernel& built = *kernel.outcome.built;
      return EstimateCost(WorkOf(built.kernel, built.grid, machine), machine).total();
    };
    ScheduledKernel preferred = BuildCheapest(region, GeneratorKind::kContract, machine, 1);
    ScheduledKernel cheapest = BuildCheapest(region, GeneratorKind::kContract, machine, 100);
    ASSERT_TRUE(preferred.outcome.built && cheapest.outcome.built);
    EXPECT_EQ(preferred.outcome.built->schedule,
              Schedules(region, GeneratorKind::kContract, machine)[0]);
    EXPECT_LE(cost_of(cheapest), cost_of(preferred));
    EXPECT_GT(cheapest.build_effort, preferred.build_effort);
    // No other schedule of the list costs less.
    for (const Schedule& schedule : Schedules(region, GeneratorKind::kContract, machine)) {
      ScheduledKernel other{BuildRegion(region, schedule, machine, "k")};
      EXPECT_LE(cost_of(cheapest), cost_of(other)) << ToString(schedule);
    }
  }
}

}  // namespace
}  // namespace tokamak
