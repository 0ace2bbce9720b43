// One loop at a time is divided. Each thread has a share of its own, an equal part of the range,
// and takes it in pieces from the front; who is done helps the others. So the same thread meets the
// same data loop after loop, as long as all are on time.
//
// A loop is published by a new number (`epoch`). Threads that wait for one look for a while, then
// sleep: a wake-up costs about 5 us and more on a busy machine, looking costs a processor. They
// enter through a gate, which the caller closes when nothing is left to take: whoever comes late
// finds it closed and has touched nothing.

#include "runtime/thread_pool.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <pthread.h>
#include <system_error>
#include <thread>
#include <vector>

namespace tokamak {
namespace {

constexpr auto kLookFor = std::chrono::microseconds(100);
// Pieces of a share: enough to even out threads of different speed.
constexpr int64_t kPieces = 4;

void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Whether `done()` came true while looking.
template <typename Done>
bool LookFor(Done&& done) {
  auto end = std::chrono::steady_clock::now() + kLookFor;
  do {
    for (int i = 0; i < 64; ++i) {
      if (done()) return true;
      Pause();
    }
  } while (std::chrono::steady_clock::now() < end);
  return done();
}

// TOKAMAK_THREADS, else one a processor. A number that is none is as if there were no word.
int ThreadsOfProcess() {
  constexpr long kMost = 1024;
  if (const char* text = std::getenv("TOKAMAK_THREADS")) {
    char* end = nullptr;
    long asked = std::strtol(text, &end, 10);
    if (end != text && *end == '\0' && asked >= 1) return static_cast<int>(std::min(asked, kMost));
  }
  return static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
}

}  // namespace

struct ThreadPool::State {
  struct alignas(64) Share {
    std::atomic<int64_t> next{0};
    int64_t end = 0;
  };
  static constexpr uint32_t kOpen = 1, kGuest = 2;  // of the gate

  std::atomic<bool> busy{false};  // a loop is being divided
  std::vector<std::thread> threads;
  std::vector<Share> shares;
  Body body = nullptr;
  void* data = nullptr;
  int64_t piece = 1;
  alignas(64) std::atomic<uint32_t> epoch{0};
  std::atomic<int32_t> sleepers{0};
  std::atomic<bool> stopping{false};
  alignas(64) std::atomic<uint32_t> gate{0};

  explicit State(int count) : shares(static_cast<size_t>(count)) {}

  bool Enter() {
    uint32_t seen = gate.load(std::memory_order_relaxed);
    while ((seen & kOpen) != 0)
      if (gate.compare_exchange_weak(seen, seen + kGuest, std::memory_order_acquire)) return true;
    return false;
  }
  void Leave() {
    if (gate.fetch_sub(kGuest, std::memory_order_release) == kGuest) gate.notify_all();
  }
  // Takes pieces, its own share first.
  void Work(size_t number) {
    for (size_t i = 0; i < shares.size(); ++i) {
      Share& share = shares[(number + i) % shares.size()];
      while (share.next.load(std::memory_order_relaxed) < share.end) {
        int64_t begin = share.next.fetch_add(piece, std::memory_order_relaxed);
        if (begin >= share.end) break;
        body(data, begin, std::min(begin + piece, share.end));
      }
    }
  }
};

ThreadPool::ThreadPool(int threads)
    : threads_(std::max(threads, 1)), state_(std::make_unique<State>(threads_)) {
  GuardAtExit(this);
}

ThreadPool::~ThreadPool() {
  Unguard(this);
  Stop();
}

ThreadPool& ThreadPool::OfProcess() {
  static auto* pool = new ThreadPool(ThreadsOfProcess());
  return *pool;
}

void ThreadPool::Start() {
  for (int i = 1; i < threads_; ++i) {
    try {
      state_->threads.emplace_back([this, i] { Serve(i); });
    } catch (const std::system_error&) {
      return;  // fewer do: shares without a thread are taken by the others
    }
    pthread_setname_np(state_->threads.back().native_handle(), "tokamak-loop");
  }
}

void ThreadPool::Serve(int number) {
  State& state = *state_;
  uint32_t seen = 0;
  for (;;) {
    auto changed = [&] { return state.epoch.load(std::memory_order_acquire) != seen; };
    if (!LookFor(changed)) {
      state.sleepers.fetch_add(1, std::memory_order_seq_cst);
      while (!changed()) state.epoch.wait(seen, std::memory_order_acquire);
      state.sleepers.fetch_sub(1, std::memory_order_relaxed);
    }
    seen = state.epoch.load(std::memory_order_acquire);
    if (state.stopping.load(std::memory_order_acquire)) return;
    if (!state.Enter()) continue;
    state.Work(static_cast<size_t>(number));
    state.Leave();
  }
}

void ThreadPool::For(int64_t count, int64_t grain, Body body, void* data) {
  if (count <= 0) return;
  grain = std::max<int64_t>(grain, 1);
  int64_t parts = std::min<int64_t>(threads_, count / grain);
  if (parts < 2 || WasForked() || state_->busy.exchange(true, std::memory_order_acquire)) {
    body(data, 0, count);
    return;
  }
  // Rather a small piece more than larger ones, of which a thread may have one too many.
  Divide(count, std::max(grain, count / (parts * kPieces)), body, data);
  state_->busy.store(false, std::memory_order_release);
}

void ThreadPool::Divide(int64_t count, int64_t piece, Body body, void* data) {
  State& state = *state_;
  if (state.threads.empty()) Start();
  state.body = body;
  state.data = data;
  state.piece = piece;
  // Shares are whole pieces, so that no range but the last is shorter than the grain.
  int64_t pieces = (count + piece - 1) / piece;
  for (int64_t i = 0; i < threads_; ++i) {
    State::Share& share = state.shares[static_cast<size_t>(i)];
    share.next.store(std::min(count, pieces * i / threads_ * piece), std::memory_order_relaxed);
    share.end = std::min(count, pieces * (i + 1) / threads_ * piece);
  }
  state.gate.store(State::kOpen, std::memory_order_release);
  state.epoch.fetch_add(1, std::memory_order_seq_cst);
  if (state.sleepers.load(std::memory_order_seq_cst) > 0) state.epoch.notify_all();
  state.Work(0);
  // All is taken: nobody needs to come any more, those inside are waited for.
  uint32_t inside = state.gate.fetch_and(~State::kOpen, std::memory_order_acq_rel) & ~State::kOpen;
  if (inside == 0) return;
  if (LookFor([&] { return state.gate.load(std::memory_order_acquire) == 0; })) return;
  while ((inside = state.gate.load(std::memory_order_acquire)) != 0) state.gate.wait(inside);
}

void ThreadPool::Stop() {
  State& state = *state_;
  if (WasForked()) {
    for (std::thread& thread : state.threads) thread.detach();  // they are of the parent
    state.threads.clear();
    return;
  }
  if (state.stopping.load(std::memory_order_acquire)) return;
  while (state.busy.exchange(true, std::memory_order_acquire)) std::this_thread::yield();
  state.stopping.store(true, std::memory_order_release);
  state.epoch.fetch_add(1, std::memory_order_seq_cst);
  state.epoch.notify_all();
  for (std::thread& thread : state.threads) thread.join();
  state.threads.clear();  // and busy it stays: loops run where they are called
}

}  // namespace tokamak
