#include "gen/contract_schedules.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include <gtest/gtest.h>

#include "ir/builder.h"
#include "kernel/simulate.h"
#include "kernel/verify.h"

// Simulates the kernel of every schedule that is listed, for several machines. Values are small
// integers, so that sums are exact in every order and type.

namespace tokamak {
namespace {

struct ScheduledDot {
  ElementType type;
  int64_t batch, m, n, k;
  bool lhs_transposed, rhs_transposed;

  Dims LhsDims() const { return lhs_transposed ? Dims{batch, k, m} : Dims{batch, m, k}; }
  Dims RhsDims() const { return rhs_transposed ? Dims{batch, n, k} : Dims{batch, k, n}; }
};

// A dot whose lhs is negated and whose results are doubled.
struct ScheduledRegion {
  Module module{"m"};
  Builder b{module, "main"};
  FusedRegion region;

  explicit ScheduledRegion(const ScheduledDot& of) {
    Instr* x = b.Parameter(Shape::Array(of.type, of.LhsDims()));
    Instr* w = b.Parameter(Shape::Array(of.type, of.RhsDims()));
    DotAttrs attrs;
    attrs.lhs_batch = attrs.rhs_batch = {0};
    attrs.lhs_contracting = {of.lhs_transposed ? 1 : 2};
    attrs.rhs_contracting = {of.rhs_transposed ? 2 : 1};
    Instr* left = b.Negate(x);
    Instr* dot = b.Dot(left, w, attrs);
    Instr* root = b.Add(dot, dot);
    EXPECT_TRUE(b.Finish(root).ok());
    region = {.computation = root->parent(),
              .instrs = {left, dot, root},
              .inputs = {x, w},
              .roots = {root}};
  }
};

int64_t ValueAt(int64_t i) {
  constexpr int64_t kValues[] = {1, -2, 2, -1, 1, 1, -1};
  return kValues[i * 5 % 7];
}

std::vector<uint8_t> Encoded(ElementType type, const std::vector<int64_t>& values) {
  std::vector<uint8_t> bytes;
  auto add = [&](auto value) {
    auto* first = reinterpret_cast<const uint8_t*>(&value);
    bytes.insert(bytes.end(), first, first + sizeof value);
  };
  for (int64_t value : values) {
    auto real = static_cast<float>(value);
    if (type == ElementType::kF32) add(real);
    if (type == ElementType::kF64) add(static_cast<double>(value));
    if (type == ElementType::kS32) add(static_cast<int32_t>(value));
    if (type == ElementType::kBF16) add(static_cast<uint16_t>(std::bit_cast<uint32_t>(real) >> 16));
  }
  return bytes;
}

std::vector<int64_t> Values(int64_t count, int64_t first) {
  std::vector<int64_t> values;
  for (int64_t i = 0; i < count; ++i) values.push_back(ValueAt(i + first));
  return values;
}

std::vector<int64_t> ResultsOf(const ScheduledDot& of, const std::vector<int64_t>& lhs,
                               const std::vector<int64_t>& rhs) {
  std::vector<int64_t> sums;
  for (int64_t g = 0; g < of.batch; ++g)
    for (int64_t i = 0; i < of.m; ++i)
      for (int64_t j = 0; j < of.n; ++j) {
        int64_t sum = 0;
        for (int64_t p = 0; p < of.k; ++p) {
          int64_t l = of.lhs_transposed ? (g * of.k + p) * of.m + i : (g * of.m + i) * of.k + p;
          int64_t r = of.rhs_transposed ? (g * of.n + j) * of.k + p : (g * of.k + p) * of.n + j;
          sum += lhs[static_cast<size_t>(l)] * rhs[static_cast<size_t>(r)];
        }
        sums.push_back(-2 * sum);
      }
  return sums;
}

void CheckSchedule(const ScheduledDot& of, const FusedRegion& region, const Schedule& schedule,
                   const Machine& machine) {
  SCOPED_TRACE(ToString(schedule));
  BuildOutcome outcome = BuildRegion(region, schedule, machine, "k");
  ASSERT_TRUE(outcome.built.has_value()) << outcome.why_not;
  EXPECT_EQ(outcome.built->schedule, schedule);
  const Kernel& kernel = outcome.built->kernel;
  Status sound = VerifyKernel(kernel);
  ASSERT_TRUE(sound.ok()) << Render(sound.error());
  std::vector<int64_t> left = Values(of.batch * of.m * of.k, 0),
                       right = Values(of.batch * of.k * of.n, 3);
  std::vector<uint8_t> lhs = Encoded(of.type, left), rhs = Encoded(of.type, right),
                       expected = Encoded(of.type, ResultsOf(of, left, right)),
                       results(expected.size());
  SimArgument arguments[] = {{lhs.data(), static_cast<int64_t>(left.size())},
                             {rhs.data(), static_cast<int64_t>(right.size())},
                             {results.data(), of.batch * of.m * of.n}};
  Result<SimReport> report = SimulateKernel(kernel, arguments, {}, {});
  ASSERT_TRUE(report.ok()) << Render(report.error());
  EXPECT_EQ(std::memcmp(results.data(), expected.data(), expected.size()), 0);
}

// Returns the number of schedules.
size_t CheckAll(const ScheduledDot& of, const Machine& machine) {
  ScheduledRegion made(of);
  std::vector<Schedule> all = Schedules(made.region, GeneratorKind::kContract, machine);
  EXPECT_FALSE(all.empty());
  BuildOutcome preferred = BuildRegion(made.region, GeneratorKind::kContract, machine, "k");
  EXPECT_TRUE(preferred.built && preferred.built->schedule == all[0]);
  for (size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(std::count(all.begin(), all.end(), all[i]), 1) << ToString(all[i]);
    CheckSchedule(of, made.region, all[i], machine);
  }
  return all.size();
}

constexpr ScheduledDot kScheduledDots[] = {
    {ElementType::kF32, 1, 33, 47, 61, false, false},
    {ElementType::kF32, 2, 40, 24, 30, true, true},
    {ElementType::kBF16, 1, 19, 35, 43, false, true},
    {ElementType::kBF16, 1, 64, 32, 32, true, false},
    {ElementType::kF64, 1, 21, 34, 25, true, false},
    {ElementType::kS32, 3, 17, 18, 19, false, true},
};

TEST(ContractSchedules, AllComputeTheSameOnCpus) {
  constexpr Machine kMachines[] = {
      {.vector_bits = 128},
      {.vector_bits = 256},
      {.vector_bits = 512, .dots_bf16 = true},
      {.vector_bits = 512, .dots_bf16 = true, .matrix_tiles = true},
  };
  for (const ScheduledDot& of : kScheduledDots)
    for (const Machine& machine : kMachines) EXPECT_GE(CheckAll(of, machine), 4u);
}

TEST(ContractSchedules, AllComputeTheSameOnGpus) {
  Machine small = GpuMachine();
  small.cores = 1;
  size_t count = 0;
  for (const ScheduledDot& of : kScheduledDots)
    for (const Machine& machine : {GpuMachine(), small}) count += CheckAll(of, machine);
  EXPECT_GE(count, 60u);
}

// K is long, so that it is split by preference.
TEST(ContractSchedules, SplitKIsPreferredOnALargeGpu) {
  ScheduledDot of{ElementType::kF32, 1, 10, 9, 150, false, true};
  ScheduledRegion made(of);
  std::vector<Schedule> all = Schedules(made.region, GeneratorKind::kContract, GpuMachine());
  ASSERT_FALSE(all.empty());
  EXPECT_GT(all[0].split_k, 1);
  EXPECT_GE(CheckAll(of, GpuMachine()), 4u);
}

// Tiles of 16 x 16: 4 along the rows, in 1, 2 or 4 groups, and 3 along the columns.
TEST(ContractSchedules, GroupsVisitEveryTile) {
  ScheduledDot of{ElementType::kF32, 2, 64, 48, 24, false, false};
  ScheduledRegion made(of);
  Schedule schedule =
      ParseSchedule("contract tile=16x16x8 inner=16x8 threads=64 vector=4 stages=2").value();
  for (int64_t group : {1, 2, 4}) {
    schedule.group = group;
    CheckSchedule(of, made.region, schedule, GpuMachine());
  }
}

std::string WhyRejected(const ScheduledDot& of, const Machine& machine, std::string_view text) {
  ScheduledRegion made(of);
  Result<Schedule> schedule = ParseSchedule(text);
  EXPECT_TRUE(schedule.ok()) << text;
  return BuildRegion(made.region, schedule.value(), machine, "k").why_not;
}

TEST(ContractSchedules, MisfitsOfACpuAreRejectedWithAReason) {
  const ScheduledDot& of = kScheduledDots[0];
  Machine machine{.vector_bits = 256};
  auto why = [&](std::string_view text) { return WhyRejected(of, machine, text); };
  EXPECT_EQ(why("contract tile=34x48x61 inner=34x48 vector=8"),
            "tile: 34 along the rows is more than 33");
  EXPECT_EQ(why("contract tile=33x44x61 inner=33x44 vector=8"),
            "tile: 44 along the columns is not a multiple of 8");
  EXPECT_EQ(why("contract tile=33x48x61 inner=33x48 vector=4"),
            "vector: the sums have 8 lanes on this machine");
  EXPECT_EQ(why("contract tile=33x48x61 inner=33x44 vector=8"),
            "inner: its columns do not fit the tile");
  EXPECT_EQ(why("contract tile=33x48x61 inner=34x48 vector=8"),
            "inner: its rows do not fit the tile");
  EXPECT_EQ(why("contract tile=33x48x61 inner=33x48 vector=8 unroll=3"),
            "unroll: not a power of two up to 8");
  EXPECT_EQ(why("contract tile=33x48x61 inner=33x48 vector=8 tiles_per_task=2"),
            "tiles_per_task: it is not a chain");
  EXPECT_EQ(why("contract tile=33x48x61 inner=33x48 vector=8 stages=2"),
            "stages: 1 for contract kernels of a CPU");
  EXPECT_EQ(why("contract tile=33x48x61 inner=33x48 vector=8"), "");
  EXPECT_EQ(why("scan tile=1x1x1"), "the generator 'scan' has no schedules");
}

TEST(ContractSchedules, MisfitsOfAGpuAreRejectedWithAReason) {
  ScheduledDot of{ElementType::kF32, 1, 300, 300, 300, false, false};
  auto why = [&](std::string_view text) { return WhyRejected(of, GpuMachine(), text); };
  EXPECT_EQ(why("contract tile=64x64x16 inner=32x32 threads=128 vector=4 stages=2"), "");
  EXPECT_EQ(why("contract tile=64x64x16 inner=32x32 threads=64 vector=4 stages=2"),
            "threads: the warps of the tile have 128");
  EXPECT_EQ(why("contract tile=64x64x16 inner=24x32 threads=128 vector=4"),
            "inner: the tile is not a multiple of the part of a warp");
  EXPECT_EQ(why("contract tile=64x64x16 inner=8x32 threads=512 vector=4"),
            "inner: not a multiple of the 16 x 8 results of a fragment");
  EXPECT_EQ(why("contract tile=64x64x12 inner=32x32 threads=128 vector=4"),
            "tile: its depth is not a multiple of 8");
  EXPECT_EQ(why("contract tile=64x64x304 inner=32x32 threads=128 vector=4 stages=2"),
            "stages: at most 2, and 1 for a single panel along K");
  EXPECT_EQ(why("contract tile=128x128x16 inner=128x64 threads=64 vector=4"),
            "inner: a thread's sums take more than 128 registers");
  EXPECT_EQ(why("contract tile=256x256x64 inner=64x64 threads=512 vector=4 stages=2"),
            "tile: it takes 544768 bytes of shared memory, and a block has 232448");
  EXPECT_EQ(why("contract tile=64x64x16 inner=32x32 threads=128 vector=8"),
            "vector: not a power of two up to 4");
  EXPECT_EQ(why("contract tile=32x8x64 inner=4x4 threads=2048 vector=4 split_k=128"),
            "threads: at most 1024");
  EXPECT_EQ(why("contract tile=32x8x64 inner=4x4 threads=512 vector=4 split_k=32"),
            "split_k: the slices of a panel are not a multiple of a vector");
  EXPECT_EQ(why("contract tile=32x8x64 inner=4x4 threads=128 vector=4 split_k=8 stages=2"),
            "stages: with split_k, panels have one");
  EXPECT_EQ(why("contract tile=32x8x64 inner=4x2 threads=256 vector=2 split_k=8"), "");
  EXPECT_EQ(why("contract tile=64x64x16 inner=32x32 threads=128 vector=4 staging=memory"),
            "staging: operands are in shared memory");
  EXPECT_EQ(why("contract tile=64x64x16 inner=32x32 threads=128 vector=4 group=5"), "");
  EXPECT_EQ(why("contract tile=64x64x16 inner=32x32 threads=128 vector=4 group=2"),
            "group: it does not divide the 5 tiles along the rows");
}

}  // namespace
}  // namespace tokamak
