#include "runtime/guarded_thread.h"

#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <pthread.h>
#include <semaphore.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/fault_signals.h"

namespace tokamak {
namespace {

using std::chrono::milliseconds;
constexpr GuardedLimits kLimits{milliseconds(20'000), milliseconds(60'000)};

class Calls final : public GuardedWork {
 public:
  explicit Calls(std::function<void()> fn) : fn_(std::move(fn)) {}
  void Run() override { fn_(); }

 private:
  std::function<void()> fn_;
};

std::string Guarded(std::function<void()> fn, const GuardedLimits& limits = kLimits) {
  return RunGuarded(std::make_shared<Calls>(std::move(fn)), limits);
}

// Not null: the undefined-behaviour sanitizer would end the process before the signal.
int* volatile nowhere = reinterpret_cast<int*>(uintptr_t{64});
volatile bool endless = true;

// Prevents GCC from seeing that it never terminates.
int Deeper(volatile int* depth) {
  volatile int own[1024] = {*depth};
  *depth = *depth + 1;
  return endless ? Deeper(depth) + own[*depth % 1024] : 0;
}

void Spin() {
  while (endless) {
  }
}

TEST(GuardedThread, WorkIsDone) {
  for (int i = 0; i < 100; ++i) {
    int done = 0;
    EXPECT_EQ(Guarded([&] { done = i + 1; }), "");
    EXPECT_EQ(done, i + 1);
  }
}

TEST(GuardedThread, CrashesAreReasons) {
  EXPECT_EQ(Guarded([] { *nowhere = 1; }), "SIGSEGV");
  EXPECT_EQ(Guarded([] { std::abort(); }), "SIGABRT");
  EXPECT_EQ(Guarded([] { __builtin_trap(); }).substr(0, 3), "SIG");  // SIGILL or SIGTRAP
  EXPECT_EQ(Guarded([] { raise(SIGFPE); }), "SIGFPE");
  EXPECT_EQ(Guarded([] { AbandonGuardedWork("fatal error: none"); }), "fatal error: none");
  EXPECT_EQ(Guarded([] { throw 1; }), "SIGABRT");
  EXPECT_EQ(Guarded([] {}), "");
}

TEST(GuardedThread, StackOverflowIsACrash) {
  EXPECT_EQ(Guarded([] {
              volatile int depth = 0;
              Deeper(&depth);
            }),
            "SIGSEGV");
}

TEST(GuardedThread, EndlessWorkIsAbandoned) {
  EXPECT_EQ(Guarded(Spin, {milliseconds(50), milliseconds(60'000)}),
            "0.05 s of processor time are used up");
  // It blocks and uses no CPU time.
  sem_t never;
  sem_init(&never, 0, 0);
  EXPECT_EQ(Guarded([&] { sem_wait(&never); }, {milliseconds(20'000), milliseconds(50)}),
            "it did not end within 0.05 s");
  EXPECT_EQ(Guarded([] {}), "");
}

TEST(GuardedThread, ManyAtOnce) {
  std::vector<std::thread> threads;
  std::atomic<int> crashed{0}, done{0};
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 20; ++i) {
        bool crash = (i + t) % 4 == 0;
        std::string reason = Guarded([&] {
          if (crash) *nowhere = 1;
        });
        (reason.empty() ? done : crashed).fetch_add(1);
        EXPECT_EQ(reason, crash ? "SIGSEGV" : "");
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(crashed.load(), 20);
  EXPECT_EQ(done.load(), 60);
}

std::atomic<int> signals_seen{0}, signals_above{0};
struct sigaction covered {};

void NotifyUsers(int) {
  signals_seen.fetch_add(1);
}

// As faulthandler and others do: first their own work, then the previous handler.
void CountSignalAbove(int signal, siginfo_t* info, void* context) {
  signals_above.fetch_add(1);
  if ((covered.sa_flags & SA_SIGINFO) != 0) {
    covered.sa_sigaction(signal, info, context);
  } else {
    covered.sa_handler(signal);
  }
}

class Handlers : public ::testing::Test {
 protected:
  void SetUp() override {
    signals_seen = signals_above = 0;
    struct sigaction action {};
    action.sa_handler = NotifyUsers;
    sigaction(SIGSEGV, &action, &before_);
  }
  void TearDown() override { sigaction(SIGSEGV, &before_, nullptr); }

  static struct sigaction Now() {
    struct sigaction now {};
    sigaction(SIGSEGV, nullptr, &now);
    return now;
  }

  struct sigaction before_ {};
};

TEST_F(Handlers, OtherHandlersGetForeignSignals) {
  // From another thread while guarded work runs.
  EXPECT_EQ(Guarded([] { std::thread([] { raise(SIGSEGV); }).join(); }), "");
  EXPECT_EQ(signals_seen.load(), 1);
  EXPECT_EQ(Guarded([] { raise(SIGSEGV); }), "SIGSEGV");
  EXPECT_EQ(signals_seen.load(), 1);
  // Afterwards our handlers are removed.
  EXPECT_EQ(Now().sa_handler, NotifyUsers);
  raise(SIGSEGV);
  EXPECT_EQ(signals_seen.load(), 2);
}

TEST_F(Handlers, InstalledAboveOursMeanwhile) {
  struct sigaction above {};
  above.sa_sigaction = CountSignalAbove;
  above.sa_flags = SA_SIGINFO;
  EXPECT_EQ(Guarded([&] { sigaction(SIGSEGV, &above, &covered); }), "");
  EXPECT_EQ(Now().sa_sigaction, CountSignalAbove);
  raise(SIGSEGV);  // above, then ours, then below
  EXPECT_EQ(signals_above.load(), 1);
  EXPECT_EQ(signals_seen.load(), 1);
  // Our new handler is above theirs, which calls our first one: each once.
  EXPECT_EQ(Guarded([] { std::thread([] { raise(SIGSEGV); }).join(); }), "");
  EXPECT_EQ(signals_above.load(), 2);
  EXPECT_EQ(signals_seen.load(), 2);
  EXPECT_EQ(Guarded([] { raise(SIGSEGV); }), "SIGSEGV");
  EXPECT_EQ(signals_above.load(), 2);
}

TEST_F(Handlers, EndTheProcessWhereThereAreNone) {
  EXPECT_DEATH(
      {
        std::signal(SIGABRT, SIG_DFL);
        Guarded([] { std::thread([] { std::abort(); }).join(); });
      },
      "");
  EXPECT_DEATH(
      {
        std::signal(SIGSEGV, SIG_DFL);
        Guarded([] { std::thread([] { *nowhere = 1; }).join(); });
      },
      "");
}

}  // namespace
}  // namespace tokamak
