#pragma once

#include <cstdint>
#include <memory>
#include <type_traits>

#include "runtime/process.h"

namespace tokamak {

// Work that is worth handing to a thread that is awake: a loop of 16 pieces costs its caller 2 us
// more than its longest piece, one of two 0.5 to 1. Threads that sleep must have so many of them.
inline constexpr double kPieceNs = 2500;
inline constexpr int64_t kPiecesAsleep = 8;

// Divides the iterations of a loop among threads. The caller works too, so that a loop which is
// small, or comes while the pool serves another one, simply runs where it was called. What runs
// where is open; each iteration runs exactly once.
class ThreadPool final : public Stoppable {
 public:
  // `threads`: with the caller. They start with the first loop that is divided.
  explicit ThreadPool(int threads);
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;
  ~ThreadPool();

  // The pool of the process: TOKAMAK_THREADS threads, or one per processor. Never destroyed;
  // stopped at exit.
  static ThreadPool& OfProcess();

  // Calls body(data, begin, end) for ranges that make up [0, count), none but the last shorter than
  // `grain`, and returns when all are done. A count of at most `grain` stays on this thread. May be
  // called by any thread, also by a body. `asleep`: the grain while threads sleep; 0 is
  // kPiecesAsleep times the other, but for a grain of 1, whose iterations may be long.
  using Body = void (*)(void* data, int64_t begin, int64_t end);
  void For(int64_t count, int64_t grain, int64_t asleep, Body body, void* data);
  template <typename F>
  void For(int64_t count, int64_t grain, F&& body, int64_t asleep = 0) {
    For(
        count, grain, asleep,
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
  void Divide(int64_t count, int64_t piece, Body body, void* data);
  void Serve(int number);

  int threads_;
  std::unique_ptr<State> state_;
};

}  // namespace tokamak
