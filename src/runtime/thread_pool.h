#pragma once

#include <cstdint>
#include <memory>
#include <type_traits>

#include "runtime/process.h"

// The thread pool: parallel loops over an index range.
namespace tokamak {

// Minimum work per chunk for awake threads, in ns: a parallel loop of 16 chunks costs its caller 2
// us more than its longest chunk, one of two chunks 0.5 to 1 us
// (docs/choices/2026-11-17-thread-lines.md). Sleeping threads need kSleepingChunkFactor times as
// much.
inline constexpr double kMinChunkNs = 2500;
inline constexpr int64_t kSleepingChunkFactor = 8;

// Divides the iterations of a loop among threads. The caller works too: a loop that is small, or
// arrives while the pool runs another one, runs on the calling thread. Which thread runs an
// iteration is unspecified; each runs exactly once.
class ThreadPool final : public Stoppable {
 public:
  // `threads`: including the caller. The others start with the first loop that is divided.
  explicit ThreadPool(int threads);
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;
  ~ThreadPool();

  // The pool of the process: TOKAMAK_THREADS threads, or one per processor. Never destroyed;
  // stopped at exit.
  static ThreadPool& OfProcess();

  // Calls body(data, begin, end) for ranges that partition [0, count), all but the last of at least
  // `min_chunk` iterations, and returns when all are done. A count of at most `min_chunk` stays on
  // this thread. Thread-safe; a body may call it too. `asleep`: the min_chunk while threads sleep;
  // 0 means kSleepingChunkFactor times min_chunk, unless min_chunk is 1, whose iterations may be
  // long.
  using Body = void (*)(void* data, int64_t begin, int64_t end);
  void For(int64_t count, int64_t min_chunk, int64_t asleep, Body body, void* data);
  template <typename F>
  void For(int64_t count, int64_t min_chunk, F&& body, int64_t asleep = 0) {
    For(
        count, min_chunk, asleep,
        [](void* data, int64_t begin, int64_t end) {
          (*static_cast<std::remove_reference_t<F>*>(data))(begin, end);
        },
        &body);
  }

  int threads() const { return threads_; }
  // A loop that takes longer than kStopWait keeps its threads.
  void Stop() override;

 private:
  struct State;
  bool StopSoon();
  void Start();
  bool IsWorthIt(int64_t count, int64_t asleep);
  void Divide(int64_t count, int64_t chunk, Body body, void* data);
  void Serve(int number);

  int threads_;
  std::unique_ptr<State> state_;
};

}  // namespace tokamak
