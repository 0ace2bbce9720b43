#include <algorithm>
#include <numeric>

#include <gtest/gtest.h>

#include "gen/generator.h"
#include "ir/builder.h"
#include "kernel/simulate.h"
#include "kernel/verify.h"

// Simulates the kernel of every schedule that is listed for row reductions. Values are small
// integers, so that sums are exact in every order.

namespace tokamak {
namespace {

// Each row minus its maximum, plus the sum of these differences; or only the sum of each row.
struct ScheduledRows {
  Module module{"m"};
  Builder b{module, "main"};
  int64_t rows, length;
  bool sums_only;
  FusedRegion region;

  ScheduledRows(int64_t row_count, int64_t row_length, bool only_sums = false)
      : rows(row_count), length(row_length), sums_only(only_sums) {
    Dims dims = {rows, length};
    Instr* x = b.Parameter(Shape::Array(ElementType::kF32, dims));
    Instr* low = b.Scalar(ElementType::kF32, -100);
    Instr* zero = b.Scalar(ElementType::kF32, 0);
    if (sums_only) {
      Instr* sums = b.Reduce({x}, {zero}, {1}, Reducing(false));
      EXPECT_TRUE(b.Finish(sums).ok());
      region = {.computation = sums->parent(), .instrs = {sums}, .inputs = {x}, .roots = {sums}};
      return;
    }
    Instr* most = b.Reduce({x}, {low}, {1}, Reducing(true));
    Instr* wide_most = b.Broadcast(most, dims, {0});
    Instr* less = b.Subtract(x, wide_most);
    Instr* sum = b.Reduce({less}, {zero}, {1}, Reducing(false));
    Instr* wide_sum = b.Broadcast(sum, dims, {0});
    Instr* root = b.Add(less, wide_sum);
    EXPECT_TRUE(b.Finish(root).ok());
    region = {.computation = root->parent(),
              .instrs = {most, wide_most, less, sum, wide_sum, root},
              .inputs = {x},
              .roots = {root}};
  }

  Computation* Reducing(bool is_maximum) {
    Builder of(module, is_maximum ? "most" : "sum");
    Instr* left = of.Parameter(Shape::Scalar(ElementType::kF32));
    Instr* right = of.Parameter(Shape::Scalar(ElementType::kF32));
    EXPECT_TRUE(of.Finish(is_maximum ? of.Maximum(left, right) : of.Add(left, right)).ok());
    return of.computation();
  }

  std::vector<float> Input() const {
    std::vector<float> x;
    for (int64_t i = 0; i < rows * length; ++i) x.push_back(static_cast<float>(i * 7 % 11 - 5));
    return x;
  }

  std::vector<float> Expected() const {
    std::vector<float> x = Input(), sums;
    for (int64_t r = 0; r < rows; ++r) {
      auto begin = x.begin() + r * length, end = begin + length;
      sums.push_back(std::accumulate(begin, end, 0.0f));
      float most = *std::max_element(begin, end), sum = 0;
      for (auto at = begin; at != end; ++at) sum += * at -= most;
      for (auto at = begin; at != end; ++at) *at += sum;
    }
    return sums_only ? sums : x;
  }

  // Checks all schedules of the machine, and returns how many there are.
  size_t CheckAll(const Machine& machine) const {
    std::vector<Schedule> all = Schedules(region, GeneratorKind::kRows, machine);
    BuildOutcome preferred = BuildRegion(region, GeneratorKind::kRows, machine, "k");
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
};

TEST(RowsSchedules, AllComputeTheSame) {
  struct Sizes {
    int64_t rows, length;
  };
  for (const Sizes& of : {Sizes{5, 24}, Sizes{300, 40}, Sizes{3, 1000}, Sizes{2, 3000},
                          Sizes{2, 40000}, Sizes{7, 129}}) {
    SCOPED_TRACE(std::to_string(of.rows) + " x " + std::to_string(of.length));
    ScheduledRows rows(of.rows, of.length);
    EXPECT_GE(rows.CheckAll(GpuMachine()), 4u);
    EXPECT_GE(rows.CheckAll({.vector_bits = 128}), 2u);
    EXPECT_GE(rows.CheckAll({.vector_bits = 512}), 2u);
    ScheduledRows sums(of.rows, of.length, true);
    EXPECT_GE(sums.CheckAll(GpuMachine()), 2u);
    EXPECT_GE(sums.CheckAll({.vector_bits = 256}), 2u);
  }
}

TEST(RowsSchedules, MisfitsAreRejectedWithAReason) {
  ScheduledRows rows(10, 256);
  auto why = [&](std::string_view text) {
    Result<Schedule> schedule = ParseSchedule(text);
    EXPECT_TRUE(schedule.ok()) << text;
    return BuildRegion(rows.region, schedule.value(), GpuMachine(), "k").why_not;
  };
  EXPECT_EQ(why("rows tile=2x1x128 threads=64 vector=4 staging=memory"), "");
  EXPECT_EQ(why("rows tile=2x1x128 threads=32 vector=4 staging=memory"),
            "threads: the tile has 64");
  EXPECT_EQ(why("rows tile=2x1x96 threads=48 vector=4 staging=memory"),
            "tile: its sizes are powers of two, and a row has at least a vector");
  EXPECT_EQ(why("rows tile=32x1x128 threads=1024 vector=4 staging=memory"),
            "tile: there are fewer rows");
  EXPECT_EQ(why("rows tile=1x1x512 threads=128 vector=4 staging=memory"),
            "tile: it has more threads than a row has vectors");
  EXPECT_EQ(why("rows tile=1x1x128 threads=16 vector=8 staging=memory"),
            "vector: not a power of two up to 4");
  EXPECT_EQ(why("rows tile=1x1x128 threads=32 vector=4 unroll=3 staging=memory"),
            "unroll: more than the steps of a thread, or than 16");
  EXPECT_EQ(why("rows tile=1x1x128 threads=32 vector=4 staging=registers"),
            "staging: not all vectors of a thread are unrolled");
  EXPECT_EQ(why("rows tile=1x1x128 threads=32 vector=4 unroll=2 staging=registers"), "");
  EXPECT_EQ(why("rows tile=1x1x128 threads=32 vector=4 staging=shared"),
            "staging: the rows do not fit in registers and shared memory, or have few threads");
  EXPECT_EQ(why("rows tile=1x2x128 threads=32 vector=4 staging=memory"),
            "tile columns: 1 for rows kernels of a GPU");
}

TEST(RowsSchedules, MisfitsOfACpuAreRejectedWithAReason) {
  ScheduledRows rows(10, 256);
  auto why = [&](std::string_view text) {
    Result<Schedule> schedule = ParseSchedule(text);
    EXPECT_TRUE(schedule.ok()) << text;
    return BuildRegion(rows.region, schedule.value(), Machine{.vector_bits = 256}, "k").why_not;
  };
  EXPECT_EQ(why("rows tile=1x1x32 vector=8 unroll=4 staging=memory"), "");
  EXPECT_EQ(why("rows tile=1x1x32 vector=4 unroll=8 staging=memory"),
            "vector: this machine has 8 lanes");
  EXPECT_EQ(why("rows tile=1x1x24 vector=8 unroll=3 staging=memory"),
            "unroll: not a power of two up to 8");
  EXPECT_EQ(why("rows tile=1x1x24 vector=8 unroll=4 staging=memory"),
            "tile: its depth is unroll * vector, 32");
  EXPECT_EQ(why("rows tile=2x1x32 vector=8 unroll=4 staging=memory"),
            "tile: one row, unless the region only reduces rows and caches nothing");
  EXPECT_EQ(why("rows tile=1x1x32 vector=8 unroll=4 staging=shared"),
            "staging: rows are cached in registers");
  EXPECT_EQ(why("rows tile=1x1x32 threads=2 vector=8 unroll=4 staging=memory"),
            "threads: 1 for rows kernels of a CPU");
}

}  // namespace
}  // namespace tokamak
