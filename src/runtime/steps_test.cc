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

// A pack of launches with these grids and grains; each reads its number.
struct Pack {
  RunStep step{.kind = StepKind::kPack, .blocks = {{}}};
  std::vector<int> numbers;
  std::vector<std::unique_ptr<CountingCode>> codes;
  std::vector<const KernelCode*> kernels;

  explicit Pack(const std::vector<std::pair<int64_t, int64_t>>& grids) {
    for (auto [grid, grain] : grids) {
      auto number = static_cast<int64_t>(numbers.size());
      step.blocks[0].push_back({.kind = StepKind::kLaunch,
                                .places = {{0, number * static_cast<int64_t>(sizeof(int))}},
                                .target = numbers.size(),
                                .grid = grid,
                                .grain = grain});
      numbers.push_back(static_cast<int>(number));
      codes.push_back(std::make_unique<CountingCode>(grid));
      kernels.push_back(codes.back().get());
    }
    ShareOut(step);
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

TEST(Packs, EachIterationRunsOnce) {
  std::vector<std::pair<int64_t, int64_t>> grids = {{1, 1},      {1, INT64_MAX}, {1000, 1},
                                                    {7, 3},      {100000, 500},  {3, INT64_MAX},
                                                    {65536, 64}, {1, 1}};
  for (size_t count = 1; count <= grids.size(); ++count) {
    Pack pack({grids.begin(), grids.begin() + static_cast<int64_t>(count)});
    ASSERT_TRUE(pack.Run().ok());
    for (size_t i = 0; i < count; ++i) {
      EXPECT_TRUE(pack.codes[i]->EachOnce()) << i << " of " << count;
      EXPECT_EQ(pack.codes[i]->argument_, static_cast<int>(i));
    }
  }
}

TEST(Packs, ALaunchIsNotDividedFinerThanItsGrain) {
  Pack pack({{10, INT64_MAX}, {1, 1}, {1000, 1 << 20}});
  EXPECT_EQ(pack.step.grid, 3);  // a unit each
  EXPECT_LT(pack.step.grid, pack.step.grain);
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

TEST(Packs, WatchersSeeEachLaunch) {
  Pack pack({{100, 1}, {200, 1}, {300, 1}});
  Names names;
  ASSERT_TRUE(pack.Run(&names).ok());
  EXPECT_EQ(names.seen, (std::vector<size_t>{0, 1, 2}));
  for (const auto& code : pack.codes) EXPECT_TRUE(code->EachOnce());
}

}  // namespace
}  // namespace tokamak
