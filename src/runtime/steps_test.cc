#include "runtime/steps.h"

#include <atomic>
#include <memory>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace tokamak {
namespace {

// Counts the runs of every iteration.
class CountingCode final : public KernelCode {
 public:
  explicit CountingCode(int64_t grid) : runs_(static_cast<size_t>(grid)) {}
  void Run(void* const* arguments, const int64_t*, int64_t begin, int64_t end) const override {
    argument_ = *static_cast<int*>(arguments[0]);
    for (int64_t i = begin; i < end; ++i) ++runs_[static_cast<size_t>(i)];
  }
  bool EachOnce() const {
    for (const std::atomic<int>& run : runs_)
      if (run.load() != 1) return false;
    return true;
  }

  mutable std::vector<std::atomic<int>> runs_;
  mutable std::atomic<int> argument_ = -1;
};

// A horizontally fused launch of launches with these grids and min_chunks; each reads its number.
struct TestLaunch {
  RunStep step{.kind = StepKind::kHorizontal, .blocks = {{}}};
  std::vector<int> numbers;
  std::vector<std::unique_ptr<CountingCode>> codes;
  std::vector<const KernelCode*> kernels;

  explicit TestLaunch(const std::vector<std::pair<int64_t, int64_t>>& grids) {
    for (auto [grid, min_chunk] : grids) {
      auto number = static_cast<int64_t>(numbers.size());
      step.blocks[0].push_back({.kind = StepKind::kLaunch,
                                .slices = {{0, number * static_cast<int64_t>(sizeof(int))}},
                                .target = numbers.size(),
                                .grid = grid,
                                .min_chunk = min_chunk});
      numbers.push_back(static_cast<int>(number));
      codes.push_back(std::make_unique<CountingCode>(grid));
      kernels.push_back(codes.back().get());
    }
    DivideIntoUnits(step);
  }

  Status Run(StepWatcher* watcher = nullptr) {
    std::vector<std::byte*> memories = {reinterpret_cast<std::byte*>(numbers.data())};
    StepContext context;
    context.memories = memories;
    context.kernels = kernels;
    context.watcher = watcher;
    return RunSteps({step}, context);
  }
};

TEST(Horizontal, EachIterationRunsOnce) {
  std::vector<std::pair<int64_t, int64_t>> grids = {{1, 1},      {1, INT64_MAX}, {1000, 1},
                                                    {7, 3},      {100000, 500},  {3, INT64_MAX},
                                                    {65536, 64}, {1, 1}};
  for (size_t count = 1; count <= grids.size(); ++count) {
    TestLaunch fused_launch({grids.begin(), grids.begin() + static_cast<int64_t>(count)});
    ASSERT_TRUE(fused_launch.Run().ok());
    for (size_t i = 0; i < count; ++i) {
      EXPECT_TRUE(fused_launch.codes[i]->EachOnce()) << i << " of " << count;
      EXPECT_EQ(fused_launch.codes[i]->argument_, static_cast<int>(i));
    }
  }
}

TEST(Horizontal, ALaunchIsNotDividedFinerThanItsMinChunk) {
  TestLaunch fused_launch({{10, INT64_MAX}, {1, 1}, {1000, 1 << 20}});
  EXPECT_EQ(fused_launch.step.grid, 3);  // one unit each
  EXPECT_LT(fused_launch.step.grid, fused_launch.step.min_chunk);
}

class Names final : public StepWatcher {
 public:
  Status Before(const RunStep& step, std::span<void* const>) override {
    seen.push_back(step.target);
    return Ok();
  }
  Status After(const RunStep& step, std::span<void* const>) override {
    EXPECT_EQ(seen.back(), step.target);
    return Ok();
  }
  std::vector<size_t> seen;
};

TEST(Horizontal, WatchersSeeEachLaunch) {
  TestLaunch fused_launch({{100, 1}, {200, 1}, {300, 1}});
  Names names;
  ASSERT_TRUE(fused_launch.Run(&names).ok());
  EXPECT_EQ(names.seen, (std::vector<size_t>{0, 1, 2}));
  for (const auto& code : fused_launch.codes) EXPECT_TRUE(code->EachOnce());
}

}  // namespace
}  // namespace tokamak
