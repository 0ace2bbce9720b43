#include <algorithm>

#include <gtest/gtest.h>

#include "gen/generator.h"
#include "ir/builder.h"
#include "kernel/simulate.h"
#include "kernel/verify.h"

// Simulates the kernel of every schedule that is listed for column reductions. Values are small
// integers, so that sums are exact in every order.

namespace tokamak {
namespace {

// The sums of x[outer, reduced, inner] over its middle dimension, negated.
struct ScheduledColumns {
  Module module{"m"};
  Builder b{module, "main"};
  int64_t outer, reduced, inner;
  FusedRegion region;

  ScheduledColumns(int64_t outer_size, int64_t reduced_size, int64_t inner_size)
      : outer(outer_size), reduced(reduced_size), inner(inner_size) {
    Builder adds(module, "adds");
    Instr* left = adds.Parameter(Shape::Scalar(ElementType::kF32));
    Instr* right = adds.Parameter(Shape::Scalar(ElementType::kF32));
    EXPECT_TRUE(adds.Finish(adds.Add(left, right)).ok());
    Instr* x = b.Parameter(Shape::Array(ElementType::kF32, {outer, reduced, inner}));
    Instr* sums = b.Reduce({x}, {b.Scalar(ElementType::kF32, 0)}, {1}, adds.computation());
    Instr* root = b.Negate(sums);
    EXPECT_TRUE(b.Finish(root).ok());
    region = {
        .computation = root->parent(), .instrs = {sums, root}, .inputs = {x}, .roots = {root}};
  }

  std::vector<float> Input() const {
    std::vector<float> x;
    for (int64_t i = 0; i < outer * reduced * inner; ++i)
      x.push_back(static_cast<float>(i * 7 % 11 - 5));
    return x;
  }

  std::vector<float> Expected() const {
    std::vector<float> x = Input(), sums(static_cast<size_t>(outer * inner));
    for (int64_t i = 0; i < outer * reduced * inner; ++i)
      sums[static_cast<size_t>(i / (reduced * inner) * inner + i % inner)] -=
          x[static_cast<size_t>(i)];
    return sums;
  }

  // Checks all schedules of the machine, and returns how many there are.
  size_t CheckAll(const Machine& machine) const {
    std::vector<Schedule> all = Schedules(region, GeneratorKind::kColumns, machine);
    BuildOutcome preferred = BuildRegion(region, GeneratorKind::kColumns, machine, "k");
    bool is_listed = preferred.built && !all.empty() && preferred.built->schedule == all[0];
    EXPECT_TRUE(is_listed) << preferred.why_not;
    for (const Schedule& schedule : all) Check(schedule, machine);
    return all.size();
  }

  void Check(const Schedule& schedule, const Machine& machine) const {
    SCOPED_TRACE(ToString(schedule));
    BuildOutcome outcome = BuildRegion(region, schedule, machine, "k");
    ASSERT_TRUE(outcome.built.has_value()) << outcome.why_not;
    EXPECT_EQ(outcome.built->schedule, schedule);
    Status sound = VerifyKernel(outcome.built->kernel);
    ASSERT_TRUE(sound.ok()) << Render(sound.error());
    std::vector<float> x = Input(), expected = Expected(), y(expected.size());
    SimArgument arguments[] = {{x.data(), static_cast<int64_t>(x.size())},
                               {y.data(), static_cast<int64_t>(y.size())}};
    Result<SimReport> report = SimulateKernel(outcome.built->kernel, arguments, {}, {});
    ASSERT_TRUE(report.ok()) << Render(report.error());
    EXPECT_EQ(y, expected);
  }

  std::string WhyRejected(std::string_view text, const Machine& machine) const {
    Result<Schedule> schedule = ParseSchedule(text);
    EXPECT_TRUE(schedule.ok()) << text;
    return BuildRegion(region, schedule.value(), machine, "k").why_not;
  }
};

TEST(ColumnsSchedules, AllComputeTheSame) {
  struct Sizes {
    int64_t outer, reduced, inner;
  };
  // The last one is large enough for several vectors per row on CPUs.
  for (const Sizes& of :
       {Sizes{3, 20, 17}, Sizes{1, 500, 48}, Sizes{40, 9, 3}, Sizes{2, 130, 1030}}) {
    SCOPED_TRACE(std::to_string(of.outer) + " x " + std::to_string(of.inner));
    ScheduledColumns columns(of.outer, of.reduced, of.inner);
    EXPECT_GE(columns.CheckAll(GpuMachine()), 4u);
    EXPECT_GE(columns.CheckAll({.vector_bits = 128}), 2u);
    EXPECT_GE(columns.CheckAll({.vector_bits = 512}), 2u);
  }
}

TEST(ColumnsSchedules, MisfitsOfAGpuAreRejectedWithAReason) {
  ScheduledColumns columns(1, 100, 96);
  auto why = [&](std::string_view text) { return columns.WhyRejected(text, GpuMachine()); };
  EXPECT_EQ(why("columns tile=1x32x8 threads=64 vector=4 unroll=2 staging=memory"), "");
  EXPECT_EQ(why("columns tile=1x32x8 threads=32 vector=4 staging=memory"),
            "threads: the tile has 64");
  EXPECT_EQ(why("columns tile=1x30x8 threads=64 vector=4 staging=memory"),
            "tile: its columns are not a multiple of a vector up to 96");
  EXPECT_EQ(why("columns tile=1x32x6 threads=48 vector=4 staging=memory"),
            "tile: its depth is a power of two up to 32 and to the reduced elements, and 1 for "
            "dots and ordered reductions");
  EXPECT_EQ(why("columns tile=1x32x8 threads=256 vector=1 unroll=32 staging=memory"),
            "unroll: at most 16");
  EXPECT_EQ(why("columns tile=1x32x8 threads=256 staging=shared"),
            "staging: elements are in memory");
  EXPECT_EQ(why("columns tile=2x32x8 threads=256 staging=memory"),
            "tile rows: 1 for columns kernels of a GPU");
}

TEST(ColumnsSchedules, MisfitsOfACpuAreRejectedWithAReason) {
  ScheduledColumns columns(2, 100, 96);
  auto why = [&](std::string_view text) { return columns.WhyRejected(text, {.vector_bits = 256}); };
  EXPECT_EQ(why("columns tile=1x32x1 inner=1x16 vector=8 unroll=4 staging=memory"), "");
  EXPECT_EQ(why("columns tile=1x32x1 inner=1x12 vector=8 staging=memory"),
            "inner: not a multiple of a vector up to the 96 results of a row");
  EXPECT_EQ(why("columns tile=1x40x1 inner=1x16 vector=8 staging=memory"),
            "tile: not a multiple of inner up to all results");
  EXPECT_EQ(why("columns tile=1x32x1 inner=1x32 vector=32 staging=memory"),
            "vector: not a power of two up to 16");
  EXPECT_EQ(why("columns tile=1x8x1 inner=1x8 vector=8 unroll=2 staging=memory"),
            "unroll: at most 16, and 1 unless a row has several vectors and one range of "
            "dimensions is reduced");
  EXPECT_EQ(why("columns tile=1x32x2 inner=1x16 vector=8 staging=memory"),
            "tile depth: 1 for columns kernels of a CPU");
}

}  // namespace
}  // namespace tokamak
