#include "runtime/step_walk.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include <gtest/gtest.h>

namespace tokamak {
namespace {

RunStep LaunchOf(size_t target) {
  return {.kind = StepKind::kLaunch, .slices = {{0, 0}}, .target = target};
}

// A loop whose condition is launch 10 and whose body is launch 20; `double_buffered`: launches 11
// and 21 in odd iterations. The copies are launch 30.
RunStep LoopOf(bool double_buffered) {
  RunStep loop{.kind = StepKind::kWhile, .slices = {{0, 0}, {0, 0}}};
  loop.blocks = {{LaunchOf(10)}, {LaunchOf(20)}, {LaunchOf(30)}};
  if (double_buffered) {
    loop.blocks.push_back({LaunchOf(11)});
    loop.blocks.push_back({LaunchOf(21)});
  }
  return loop;
}

// Logs what the executor asks for. A condition is true `trips` times.
class FakeBackend final : public StepBackend {
 public:
  Status Run(std::span<const RunStep> steps, size_t& count) override {
    count = std::min(group, steps.size());
    log += (count > 1 ? "[" + std::to_string(count) + "]" : "") +
           std::to_string(steps.front().target) + " ";
    if (steps.front().target == fails) return MakeError(ErrorCode::kOutOfMemory, "failed");
    return Ok();
  }
  Status Read(const BufferSlice&, void* to, size_t bytes) override {
    int32_t value = bytes == 1 ? (trips-- > 0 ? 1 : 0) : block;
    std::memcpy(to, &value, bytes);
    return Ok();
  }
  Result<StepArrays> ArraysOf(const RunStep&, bool on_host) override {
    ++arrays;
    return StepArrays{{this}, on_host && has_copies ? std::make_shared<int>(1) : nullptr};
  }
  Result<bool> RunLoop(const RunStep&) override {
    if (takes_loops) log += "loop ";
    return takes_loops;
  }
  std::optional<uint64_t> TripCountOf(const RunStep&) const override { return trip_count; }
  Result<uint64_t> RunIterations(const RunStep&, uint64_t left) override {
    if (together == 0 || left < together) return uint64_t{0};
    log += "<" + std::to_string(together) + "> ";
    return together;
  }

  std::string log;
  size_t group = 1, fails = 99;
  int trips = 0;
  int32_t block = 0;
  bool takes_loops = false, has_copies = false;
  std::optional<uint64_t> trip_count;
  uint64_t together = 0;
  int arrays = 0;
};

class CountingWatcher final : public StepWatcher {
 public:
  explicit CountingWatcher(bool reads = true) : reads_(reads) {}
  bool ReadsArrays() const override { return reads_; }
  Status Before(const RunStep&, std::span<void* const> arguments) override {
    EXPECT_EQ(arguments.size(), 1u);
    ++before;
    return Ok();
  }
  Status After(const RunStep& step, std::span<void* const>) override {
    ++after;
    if (step.target == 3) return MakeError(ErrorCode::kKernelDiffers, "differs");
    return Ok();
  }
  int before = 0, after = 0;

 private:
  bool reads_;
};

std::string LogOf(const RunStep& step, FakeBackend backend) {
  EXPECT_TRUE(WalkSteps({&step, 1}, backend, {}).ok());
  return backend.log;
}

TEST(StepWalk, LoopsCopyCarriedValuesOrAlternate) {
  FakeBackend backend;
  backend.trips = 2;
  EXPECT_EQ(LogOf(LoopOf(false), backend), "10 20 30 10 20 30 10 ");
  EXPECT_EQ(LogOf(LoopOf(true), backend), "10 20 11 21 10 ");
  backend.trips = 1;  // an odd trip count ends in the other buffers
  EXPECT_EQ(LogOf(LoopOf(true), backend), "10 20 11 30 ");
  RunStep runs_first = LoopOf(false);
  runs_first.runs_first = true;
  EXPECT_EQ(LogOf(runs_first, backend), "20 30 10 20 30 10 ");
}

TEST(StepWalk, AKnownTripCountNeedsNoCondition) {
  FakeBackend backend;
  backend.trip_count = 3;
  EXPECT_EQ(LogOf(LoopOf(false), backend), "20 30 20 30 20 30 ");
  EXPECT_EQ(LogOf(LoopOf(true), backend), "20 21 20 30 ");
  backend.trip_count = 5;
  backend.together = 2;
  EXPECT_EQ(LogOf(LoopOf(true), backend), "<2> <2> 20 30 ");
  backend.takes_loops = true;
  EXPECT_EQ(LogOf(LoopOf(true), backend), "loop ");
}

TEST(StepWalk, ConditionalsRunOneBlock) {
  RunStep step{.kind = StepKind::kConditional, .slices = {{0, 0}}};
  step.blocks = {{LaunchOf(1)}, {LaunchOf(2)}, {LaunchOf(3)}};
  FakeBackend backend;
  const std::vector<std::pair<int32_t, std::string>> blocks = {
      {0, "1 "}, {1, "2 "}, {2, "3 "}, {3, "3 "}, {-1, "3 "}};
  for (const auto& [number, log] : blocks) {
    backend.block = number;
    EXPECT_EQ(LogOf(step, backend), log) << number;
  }
  step.is_pred = true;
  EXPECT_EQ(LogOf(step, backend), "2 ");
  backend.trips = 1;
  EXPECT_EQ(LogOf(step, backend), "1 ");
}

TEST(StepWalk, ABackendMayTakeSeveralSteps) {
  std::vector<RunStep> steps;
  for (size_t i = 0; i < 5; ++i) steps.push_back(LaunchOf(i));
  FakeBackend backend;
  backend.group = 3;
  ASSERT_TRUE(WalkSteps(steps, backend, {}).ok());
  EXPECT_EQ(backend.log, "[3]0 [2]3 ");
}

TEST(StepWalk, WatchedStepsRunOneByOne) {
  std::vector<RunStep> steps = {LaunchOf(0), LaunchOf(1), LoopOf(false)};
  steps.push_back({.kind = StepKind::kCopy, .slices = {{0, 0}, {0, 8}}, .target = 5});
  FakeBackend backend;
  backend.group = 3;
  backend.takes_loops = true;
  backend.trip_count = 2;
  backend.together = 2;
  CountingWatcher watcher;
  ASSERT_TRUE(WalkSteps(steps, backend, {.watcher = &watcher}).ok());
  EXPECT_EQ(backend.log, "0 1 20 30 20 30 5 ");
  EXPECT_EQ(watcher.before, 6);  // copies are not watched
  EXPECT_EQ(watcher.after, 6);
}

// Copies are made again after the step; other arrays are where they were.
TEST(StepWalk, WatchersReadCopiesBeforeAndAfter) {
  std::vector<RunStep> steps = {LaunchOf(0)};
  FakeBackend backend;
  backend.has_copies = true;
  CountingWatcher reader, timer(false);
  ASSERT_TRUE(WalkSteps(steps, backend, {.watcher = &reader}).ok());
  EXPECT_EQ(std::exchange(backend.arrays, 0), 2);
  ASSERT_TRUE(WalkSteps(steps, backend, {.watcher = &timer}).ok());
  EXPECT_EQ(backend.arrays, 1);
}

TEST(StepWalk, TheFirstErrorEndsTheRun) {
  std::vector<RunStep> steps = {LaunchOf(0), LoopOf(false), LaunchOf(3), LaunchOf(4)};
  FakeBackend backend;
  backend.trips = 1;
  backend.fails = 20;
  Status status = WalkSteps(steps, backend, {});
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, ErrorCode::kOutOfMemory);
  EXPECT_EQ(std::exchange(backend.log, ""), "0 10 20 ");
  CountingWatcher watcher;
  backend.fails = 99;
  status = WalkSteps(steps, backend, {.watcher = &watcher});
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, ErrorCode::kKernelDiffers);
  EXPECT_EQ(backend.log, "0 10 3 ");
}

TEST(StepWalk, AStopRequestEndsTheRun) {
  std::vector<RunStep> steps = {LoopOf(false)};
  FakeBackend backend;
  backend.trip_count = 3;
  std::atomic<bool> stop = true;
  Status status = WalkSteps(steps, backend, {.stop = &stop});
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, ErrorCode::kStopped);
  EXPECT_EQ(backend.log, "");
}

TEST(StepWalk, NumbersAreDepthFirst) {
  std::vector<RunStep> steps = {LaunchOf(0), LoopOf(false), LaunchOf(1)};
  NumberSteps(steps);
  EXPECT_EQ(steps[0].number, 0u);
  EXPECT_EQ(steps[1].number, 1u);
  EXPECT_EQ(steps[1].blocks[2][0].number, 4u);
  EXPECT_EQ(steps[2].number, 5u);
}

}  // namespace
}  // namespace tokamak
