#include "runtime/worker.h"

#include <memory>
#include <mutex>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

namespace tokamak {
namespace {

// Counts, and records the order of execution.
class Note final : public Task {
 public:
  Note(std::vector<int>& order, int number, std::atomic<int>& stopped_count)
      : order_(order), number_(number), stopped_(stopped_count) {}
  ~Note() override = default;
  void Run(bool stopped) override {
    if (stopped) {
      ++stopped_;
    } else {
      order_.push_back(number_);
    }
    delete this;
  }

 private:
  std::vector<int>& order_;
  int number_;
  std::atomic<int>& stopped_;
};

class Sleep final : public Task {
 public:
  explicit Sleep(const std::atomic<bool>& until) : until_(until) {}
  ~Sleep() override = default;
  void Run(bool) override {
    while (!until_) std::this_thread::yield();
    delete this;
  }

 private:
  const std::atomic<bool>& until_;
};

TEST(Workers, OneThreadKeepsTheOrder) {
  std::vector<int> order;
  std::atomic<int> stopped{0};
  Workers worker("test", 1);
  for (int i = 0; i < 100; ++i) worker.Post(new Note(order, i, stopped));
  EXPECT_TRUE(WaitAllIdle(10000));
  ASSERT_EQ(order.size(), 100u);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(order[static_cast<size_t>(i)], i);
  EXPECT_EQ(stopped, 0);
}

TEST(Workers, StopRunsWhatIsQueuedAsStopped) {
  std::vector<int> order;
  std::atomic<int> stopped{0};
  Workers worker("test", 1);
  worker.Post(new Sleep(worker.stopping()));  // until Stop is called
  for (int i = 0; i < 10; ++i) worker.Post(new Note(order, i, stopped));
  worker.Stop();
  EXPECT_EQ(stopped, 10);
  worker.Post(new Note(order, 0, stopped));
  EXPECT_EQ(stopped, 11);
  EXPECT_TRUE(order.empty());
}

// The caller of Stop may hold the very lock that a task waits for.
TEST(Workers, AbsentWorkersAreNotAwaited) {
  std::mutex host;
  std::atomic<bool> waiting{false}, done{false};
  class Waits final : public Task {
   public:
    Waits(Workers& workers, std::mutex& host, std::atomic<bool>& waiting, std::atomic<bool>& done)
        : workers_(workers), host_(host), waiting_(waiting), done_(done) {}
    ~Waits() override = default;
    void Run(bool) override {
      {
        Workers::Away away(workers_);
        waiting_ = true;
        std::lock_guard<std::mutex> lock(host_);
      }
      done_ = true;
      delete this;
    }

   private:
    Workers& workers_;
    std::mutex& host_;
    std::atomic<bool>&waiting_, &done_;
  };
  auto workers = std::make_unique<Workers>("test", 1);
  {
    std::lock_guard<std::mutex> lock(host);
    workers->Post(new Waits(*workers, host, waiting, done));
    while (!waiting) std::this_thread::yield();
    workers->Stop();
    workers.reset();
    EXPECT_FALSE(done);
  }
  EXPECT_TRUE(WaitAllIdle(10000));
  EXPECT_TRUE(done);
}

// A kernel that does not poll for stopping does not delay the end of the process.
TEST(Workers, LongTasksAreAbandoned) {
  std::vector<int> order;
  std::atomic<int> stopped{0};
  std::atomic<bool> end{false};
  auto workers = std::make_unique<Workers>("test", 1);
  workers->Post(new Sleep(end));
  for (int i = 0; i < 3; ++i) workers->Post(new Note(order, i, stopped));
  auto begin = std::chrono::steady_clock::now();
  workers->Stop();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 20 * kStopWait);
  EXPECT_EQ(stopped, 3);  // the waiters of queued tasks do not wait either
  EXPECT_FALSE(WaitAllIdle(0));
  workers.reset();
  end = true;
  EXPECT_TRUE(WaitAllIdle(10000));
  EXPECT_TRUE(order.empty());
}

TEST(Workers, ThePoolRunsSeveralAtATime) {
  std::atomic<int> ran{0};
  class Count final : public Task {
   public:
    explicit Count(std::atomic<int>& ran) : ran_(ran) {}
    ~Count() override = default;
    void Run(bool) override {
      ++ran_;
      delete this;
    }

   private:
    std::atomic<int>& ran_;
  };
  for (int i = 0; i < 1000; ++i) Pool().Post(new Count(ran));
  EXPECT_TRUE(WaitAllIdle(10000));
  EXPECT_EQ(ran, 1000);
  EXPECT_GE(Pool().threads(), 1);
}

#if !defined(__SANITIZE_THREAD__)
TEST(Workers, AForkedProcessGetsAnErrorAndEnds) {
  Workers worker("test", 1);
  std::vector<int> order;
  std::atomic<int> stopped{0};
  worker.Post(new Note(order, 0, stopped));
  EXPECT_TRUE(WaitAllIdle(10000));
  EXPECT_FALSE(WasForked());
  pid_t child = fork();
  if (child == 0) {
    bool forked = WasForked();
    worker.Stop();  // joins no thread
    _exit(forked ? 7 : 8);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 7);
}
#endif

}  // namespace
}  // namespace tokamak
