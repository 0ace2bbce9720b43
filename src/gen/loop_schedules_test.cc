#include <algorithm>

#include <gtest/gtest.h>

#include "gen/generator.h"
#include "ir/builder.h"
#include "kernel/simulate.h"
#include "kernel/verify.h"

// Simulates the kernel of every schedule that is listed for elementwise regions, with and without
// tiles of a transposed input.

namespace tokamak {
namespace {

// x + y, or the transpose of x plus y; the result is rows x columns.
struct ScheduledLoop {
  Module module{"m"};
  Builder b{module, "main"};
  int64_t rows, columns;
  bool transposed;
  FusedRegion region;

  ScheduledLoop(int64_t row_count, int64_t column_count, bool is_transposed)
      : rows(row_count), columns(column_count), transposed(is_transposed) {
    Dims dims = {rows, columns};
    Instr* x =
        b.Parameter(Shape::Array(ElementType::kF32, transposed ? Dims{columns, rows} : dims));
    Instr* y = b.Parameter(Shape::Array(ElementType::kF32, dims));
    Instr* moved = transposed ? b.Transpose(x, {1, 0}) : nullptr;
    Instr* root = b.Add(transposed ? moved : x, y);
    EXPECT_TRUE(b.Finish(root).ok());
    region = {.computation = root->parent(), .instrs = {root}, .inputs = {x, y}, .roots = {root}};
    if (transposed) region.instrs.insert(region.instrs.begin(), moved);
  }

  size_t CheckAll(const Machine& machine) const {
    std::vector<Schedule> all = Schedules(region, GeneratorKind::kLoop, machine);
    BuildOutcome preferred = BuildRegion(region, GeneratorKind::kLoop, machine, "k");
    bool is_listed = preferred.built && !all.empty() && preferred.built->schedule == all[0];
    EXPECT_TRUE(is_listed) << preferred.why_not;
    EXPECT_EQ(all[0].tile_rows > 1, transposed);
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
    auto count = static_cast<size_t>(rows * columns);
    std::vector<float> x(count), y(count), z(count), expected(count);
    for (int64_t i = 0; i < rows * columns; ++i) {
      auto at = static_cast<size_t>(i);
      x[at] = static_cast<float>(i % 1009);
      y[at] = static_cast<float>(3 * i % 500);
    }
    for (int64_t i = 0; i < rows * columns; ++i) {
      auto from = static_cast<size_t>(transposed ? i % columns * rows + i / columns : i);
      expected[static_cast<size_t>(i)] = x[from] + y[static_cast<size_t>(i)];
    }
    SimArgument arguments[] = {
        {x.data(), rows * columns}, {y.data(), rows * columns}, {z.data(), rows * columns}};
    Result<SimReport> report = SimulateKernel(outcome.built->kernel, arguments, {}, {});
    ASSERT_TRUE(report.ok()) << Render(report.error());
    EXPECT_EQ(z, expected);
  }

  std::string WhyRejected(std::string_view text, const Machine& machine) const {
    Result<Schedule> schedule = ParseSchedule(text);
    EXPECT_TRUE(schedule.ok()) << text;
    return BuildRegion(region, schedule.value(), machine, "k").why_not;
  }
};

TEST(LoopSchedules, AllComputeTheSame) {
  Machine small = GpuMachine();
  small.cores = 1;
  for (const Machine& machine : {GpuMachine(), small}) {
    EXPECT_GE(ScheduledLoop(5, 7, false).CheckAll(machine), 2u);
    EXPECT_GE(ScheduledLoop(300, 128, false).CheckAll(machine), 4u);
    EXPECT_GE(ScheduledLoop(100, 90, true).CheckAll(machine), 4u);
    EXPECT_GE(ScheduledLoop(128, 192, true).CheckAll(machine), 4u);
  }
}

TEST(LoopSchedules, AllComputeTheSameOnCpus) {
  for (int64_t bits : {128, 256, 512}) {
    Machine machine{.vector_bits = bits, .cores = 4};
    EXPECT_GE(ScheduledLoop(5, 7, false).CheckAll(machine), 2u);
    EXPECT_GE(ScheduledLoop(300, 128, false).CheckAll(machine), 2u);
    EXPECT_GE(ScheduledLoop(101, 93, true).CheckAll(machine), 4u);
    EXPECT_GE(ScheduledLoop(128, 192, true).CheckAll(machine), 4u);
  }
}

TEST(LoopSchedules, MisfitsOnCpusAreRejectedWithAReason) {
  ScheduledLoop plain(64, 64, false), transposed(128, 192, true);
  Machine machine{.vector_bits = 256};
  auto why = [&](std::string_view text) { return plain.WhyRejected(text, machine); };
  EXPECT_EQ(why("loop vector=8 unroll=4 staging=memory"), "");
  EXPECT_EQ(why("loop vector=16 staging=memory"), "vector: not a power of two up to 8");
  EXPECT_EQ(why("loop vector=8 unroll=3 staging=memory"), "unroll: not a power of two up to 8");
  EXPECT_EQ(why("loop vector=4 unroll=2 staging=memory"), "unroll: 1 for shorter vectors");
  EXPECT_EQ(why("loop tile=8x8x1 vector=8 staging=memory"), "it reads no transposed input");
  EXPECT_EQ(why("loop threads=128 staging=memory"), "threads: 1 for loop kernels of a CPU");
  auto tiled = [&](std::string_view text) { return transposed.WhyRejected(text, machine); };
  EXPECT_EQ(tiled("loop tile=8x16x1 vector=8 staging=registers"), "");
  EXPECT_EQ(tiled("loop tile=10x24x1 vector=4 staging=memory"), "");
  EXPECT_EQ(tiled("loop tile=4x16x1 vector=4 staging=registers"),
            "staging: in registers, squares of 8 elements");
  EXPECT_EQ(tiled("loop tile=8x12x1 vector=8 staging=memory"),
            "tile: its columns are not whole vectors");
  EXPECT_EQ(tiled("loop tile=500x8x1 vector=8 staging=memory"),
            "tile: it is larger than the array");
}

TEST(LoopSchedules, MisfitsAreRejectedWithAReason) {
  ScheduledLoop plain(64, 64, false), transposed(128, 192, true);
  auto why = [&](std::string_view text) { return plain.WhyRejected(text, GpuMachine()); };
  EXPECT_EQ(why("loop threads=128 vector=4 unroll=3 staging=memory"), "");
  EXPECT_EQ(why("loop threads=128 vector=8 staging=memory"), "vector: not a power of two up to 4");
  EXPECT_EQ(why("loop threads=2048 vector=4 staging=memory"), "threads: at most 1024");
  EXPECT_EQ(why("loop threads=128 unroll=32 staging=memory"), "unroll: at most 16");
  EXPECT_EQ(why("loop tile=32x32x1 threads=256 staging=shared"), "it reads no transposed input");
  EXPECT_EQ(why("loop threads=128 split_k=2"), "split_k: 1 for loop kernels of a GPU");
  EXPECT_EQ(why("scatter threads=128"), "the generator 'scatter' has no schedules");
  auto tiled = [&](std::string_view text) { return transposed.WhyRejected(text, GpuMachine()); };
  EXPECT_EQ(tiled("loop tile=64x64x1 threads=512 vector=2 staging=shared"), "");
  EXPECT_EQ(tiled("loop threads=128 vector=1 staging=memory"), "");
  EXPECT_EQ(tiled("loop threads=128 vector=4 staging=memory"),
            "vector: smaller, because its accesses are strided");
  EXPECT_EQ(tiled("loop tile=64x32x1 threads=256 staging=shared"),
            "tile: not a square whose side is a power of two from 32");
  EXPECT_EQ(tiled("loop tile=128x128x1 threads=256 staging=shared"),
            "tile: it takes more than 49152 bytes of shared memory");
  EXPECT_EQ(tiled("loop tile=64x64x1 threads=32 staging=shared"),
            "threads: not a power of two, or not whole rows of a tile");
}

}  // namespace
}  // namespace tokamak
