#include "runtime/thread_pool.h"

#include <atomic>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include <gtest/gtest.h>

namespace tokamak {
namespace {

TEST(ThreadPool, RunsEachIterationOnce) {
  ThreadPool pool(4);
  for (int64_t count : {0, 1, 2, 3, 7, 100, 1001, 65536}) {
    for (int64_t min_chunk : {1, 3, 64, 1000}) {
      std::vector<std::atomic<int>> runs(static_cast<size_t>(count));
      std::atomic<int> short_ranges{0};
      pool.For(count, min_chunk, [&](int64_t begin, int64_t end) {
        if (end - begin < min_chunk && end != count) ++short_ranges;
        for (int64_t i = begin; i < end; ++i) ++runs[static_cast<size_t>(i)];
      });
      for (const auto& run : runs) ASSERT_EQ(run.load(), 1) << count << " by " << min_chunk;
      EXPECT_EQ(short_ranges.load(), 0) << count << " by " << min_chunk;
    }
  }
}

TEST(ThreadPool, SmallLoopsStayWithTheCaller) {
  ThreadPool pool(4);
  auto caller = std::this_thread::get_id();
  int ranges = 0;
  pool.For(1000, 1000, [&](int64_t begin, int64_t end) {
    EXPECT_EQ(std::this_thread::get_id(), caller);
    EXPECT_EQ(begin, 0);
    EXPECT_EQ(end, 1000);
    ++ranges;
  });
  EXPECT_EQ(ranges, 1);
}

TEST(ThreadPool, ServesCallersAtTheSameTimeAndFromWithin) {
  ThreadPool pool(3);
  std::atomic<int64_t> sum{0};
  auto caller = [&] {
    for (int repetition = 0; repetition < 200; ++repetition) {
      pool.For(64, 4, [&](int64_t begin, int64_t end) {
        pool.For(end - begin, 1, [&](int64_t from, int64_t to) { sum += to - from; });
      });
    }
  };
  std::vector<std::thread> callers;
  for (int i = 0; i < 3; ++i) callers.emplace_back(caller);
  for (std::thread& thread : callers) thread.join();
  EXPECT_EQ(sum.load(), 3 * 200 * 64);
}

TEST(ThreadPool, WorksAfterAPause) {
  ThreadPool pool(2);
  for (int repetition = 0; repetition < 5; ++repetition) {
    std::atomic<int64_t> sum{0};
    pool.For(100, 1, [&](int64_t begin, int64_t end) { sum += end - begin; });
    EXPECT_EQ(sum.load(), 100);
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

// Threads may be late, or may be stealing, when the next loop has already started.
TEST(ThreadPool, LoopsInARowAreNotMixedUp) {
  ThreadPool pool(5);
  uint32_t draw = 1;
  for (int repetition = 0; repetition < 20000; ++repetition) {
    draw = draw * 1664525 + 1013904223;
    auto count = static_cast<int64_t>(1 + draw % 97);
    std::vector<int> runs(static_cast<size_t>(count));
    pool.For(count, 1 + (draw >> 8) % 4, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        if ((draw >> 12) % 16 == 0 && i % 7 == 0) std::this_thread::yield();
        ++runs[static_cast<size_t>(i)];
      }
    });
    for (int run : runs) ASSERT_EQ(run, 1) << repetition;
    if ((draw >> 16) % 1024 == 0) std::this_thread::sleep_for(std::chrono::microseconds(300));
  }
}

TEST(ThreadPool, WaitsForALongChunk) {
  ThreadPool pool(2);
  std::atomic<int> done{0};
  pool.For(64, 1, [&](int64_t begin, int64_t end) {
    if (begin == 63) std::this_thread::sleep_for(std::chrono::milliseconds(20));
    done += static_cast<int>(end - begin);
  });
  EXPECT_EQ(done.load(), 64);
}

TEST(ThreadPool, StopLeavesALoopThatTakesLong) {
  ThreadPool pool(2);
  std::atomic<bool> started{false}, end{false};
  std::atomic<int64_t> done{0};
  std::thread loop([&] {
    pool.For(2, 1, [&](int64_t first, int64_t last) {
      started = true;
      while (!end) std::this_thread::yield();
      done += last - first;
    });
  });
  while (!started) std::this_thread::yield();
  auto begin = std::chrono::steady_clock::now();
  pool.Stop();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 20 * kStopWait);
  EXPECT_EQ(done, 0);
  end = true;
  loop.join();
  EXPECT_EQ(done, 2);
  pool.Stop();  // now it stops
}

TEST(ThreadPool, AForkedChildRunsAlone) {
  ThreadPool pool(2);
  std::atomic<int64_t> sum{0};
  auto run = [&] { pool.For(100, 1, [&](int64_t begin, int64_t end) { sum += end - begin; }); };
  run();
  pid_t child = fork();
  if (child == 0) {
    sum = 0;
    run();
    _exit(sum.load() == 100 ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace tokamak
