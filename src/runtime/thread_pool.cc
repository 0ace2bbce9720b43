// One loop at a time is divided, into pieces. Each thread has an equal share of them, and a line of
// memory of its own: there its share is given to it, there it takes pieces from the front, and
// there it counts what it has done. So threads that are on time meet nobody, and the same thread
// meets the same data loop after loop. Who is done early looks for the next loop first, which often
// comes at once, and then takes pieces of others: of those who sleep, are late, or have more to do.
//
// A share is one word, with the number of its loop: whoever takes a piece knows which loop it is
// of, and that loop, with all that it reads, stays until the piece is counted.
//
// Threads that wait for a loop look for a while, then sleep: to be woken takes about 5 us, and more
// on a busy machine; looking takes a processor.

#include "runtime/thread_pool.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <pthread.h>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace tokamak {
namespace {

constexpr auto kLookFor = std::chrono::microseconds(100);
// Before a thread takes what was given to others.
constexpr auto kLetOthers = std::chrono::microseconds(1);
// Loops that follow each other this closely are worth waking threads for.
constexpr auto kInARow = std::chrono::microseconds(200);
// Pieces of a share: enough to even out threads of different speed. Taking one costs some 50 ns.
constexpr int64_t kPieces = 12;

void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Whether `done()` came true while looking.
template <typename Done>
bool LookFor(std::chrono::microseconds time, Done&& done) {
  auto look = [&] {
    for (int i = 0; i < 16; ++i) {
      if (done()) return true;
      Pause();
    }
    return false;
  };
  if (look()) return true;
  auto end = std::chrono::steady_clock::now() + time;
  do {
    if (look()) return true;
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
  // Pieces next ... end - 1 of loop `loop`.
  struct Share {
    uint32_t loop;
    uint16_t next, end;

    static Share Of(uint64_t word) {
      return {static_cast<uint32_t>(word >> 32), static_cast<uint16_t>(word >> 16),
              static_cast<uint16_t>(word)};
    }
    uint64_t word() const { return uint64_t{loop} << 32 | uint64_t{next} << 16 | end; }
  };
  // Two lines of the cache: processors fetch them in pairs.
  struct alignas(128) Thread {
    std::atomic<uint64_t> share{0};
    std::atomic<uint64_t> done{0};  // pieces that this thread has run, ever
    // The loop of the share.
    Body body = nullptr;
    void* data = nullptr;
    int64_t piece = 1, count = 0;
    std::atomic<uint32_t> bell{0};
    std::atomic<bool> sleeps{false};
  };

  std::vector<std::thread> threads;
  std::vector<Thread> lines;
  std::atomic<bool> busy{false};  // a loop is being divided
  // Of who divides.
  uint32_t loop = 0;
  uint64_t total = 0;           // pieces, ever
  std::vector<uint64_t> known;  // what threads had done when they were asked
  std::chrono::steady_clock::time_point last{};
  alignas(128) std::atomic<int32_t> sleepers{0};
  std::atomic<bool> stopping{false};
  // Who divides sleeps until threads are done.
  std::atomic<bool> waits{false};
  std::atomic<uint32_t> finished{0};

  explicit State(int count)
      : lines(static_cast<size_t>(count)), known(static_cast<size_t>(count)) {}

  Share ShareOf(size_t number) const {
    return Share::Of(lines[number].share.load(std::memory_order_acquire));
  }

  // Thread `number` runs what is left of the share of thread `of`, if it is of this loop.
  void Take(size_t number, size_t of, uint32_t of_loop) {
    Thread& line = lines[of];
    uint64_t word = line.share.load(std::memory_order_relaxed);
    for (;;) {
      Share share = Share::Of(word);
      if (share.loop != of_loop || share.next >= share.end) return;
      int64_t at = share.next++;
      if (!line.share.compare_exchange_weak(word, share.word(), std::memory_order_acquire))
        continue;
      line.body(line.data, at * line.piece, std::min((at + 1) * line.piece, line.count));
      lines[number].done.fetch_add(1, std::memory_order_seq_cst);
      if (waits.load(std::memory_order_seq_cst)) {
        finished.fetch_add(1, std::memory_order_seq_cst);
        finished.notify_one();
      }
      word = line.share.load(std::memory_order_relaxed);
    }
  }
  template <typename Until>
  void Help(size_t number, uint32_t of_loop, Until&& until) {
    for (size_t i = 1; i < lines.size() && !until(); ++i)
      Take(number, (number + i) % lines.size(), of_loop);
  }
  // Threads wake each other: each two more, if they have a share and sleep. Who falls asleep
  // meanwhile looks for a share first.
  void Wake(size_t number, uint32_t of_loop) {
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (sleepers.load(std::memory_order_seq_cst) == 0) return;
    for (size_t i = 2 * number + 1; i <= 2 * number + 2 && i < lines.size(); ++i)
      if (ShareOf(i).loop == of_loop && lines[i].sleeps.load(std::memory_order_seq_cst)) Ring(i);
  }
  void Ring(size_t number) {
    lines[number].bell.fetch_add(1, std::memory_order_seq_cst);
    lines[number].bell.notify_one();
  }
  // Whether the first `parts` threads have run all pieces.
  bool AllDone(size_t parts) {
    uint64_t sum = 0;
    for (size_t i = 0; i < parts; ++i) known[i] = lines[i].done.load(std::memory_order_acquire);
    for (uint64_t done : known) sum += done;
    return sum == total;
  }
};

ThreadPool::ThreadPool(int threads)
    : threads_(std::max(threads, 1)), state_(std::make_unique<State>(threads_)) {
  GuardAtExit(this);
}

ThreadPool::~ThreadPool() {
  Unguard(this);
  while (!StopSoon()) {
  }
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

void ThreadPool::Serve(int thread) {
  State& state = *state_;
  auto number = static_cast<size_t>(thread);
  State::Thread& own = state.lines[number];
  uint32_t seen = 0;
  auto changed = [&] { return state.ShareOf(number).loop != seen; };
  for (;;) {
    if (!LookFor(kLookFor, changed)) {
      state.sleepers.fetch_add(1, std::memory_order_seq_cst);
      own.sleeps.store(true, std::memory_order_seq_cst);
      std::atomic_thread_fence(std::memory_order_seq_cst);
      for (;;) {
        uint32_t rung = own.bell.load(std::memory_order_seq_cst);
        if (changed()) break;
        own.bell.wait(rung, std::memory_order_seq_cst);
      }
      own.sleeps.store(false, std::memory_order_relaxed);
      state.sleepers.fetch_sub(1, std::memory_order_relaxed);
    }
    seen = state.ShareOf(number).loop;
    if (state.stopping.load(std::memory_order_acquire)) return;
    state.Wake(number, seen);
    state.Take(number, number, seen);
    if (!LookFor(kLetOthers, changed)) state.Help(number, seen, changed);
  }
}

void ThreadPool::For(int64_t count, int64_t grain, int64_t asleep, Body body, void* data) {
  if (count <= 0) return;
  grain = std::max<int64_t>(grain, 1);
  if (asleep == 0) asleep = grain == 1 ? 1 : kPiecesAsleep * grain;
  int64_t parts = std::min<int64_t>(threads_, count / grain);
  if (parts < 2 || WasForked() || state_->busy.exchange(true, std::memory_order_acquire)) {
    body(data, 0, count);
    return;
  }
  if (IsWorthIt(count, asleep)) {
    // Rather a small piece more than larger ones, of which a thread may have one too many.
    Divide(count, std::max(grain, count / (parts * kPieces)), body, data);
    state_->busy.store(false, std::memory_order_release);
  } else {
    state_->busy.store(false, std::memory_order_release);
    body(data, 0, count);
  }
}

// Threads that are awake are had for little. Others are woken for a large loop, or for one of many.
bool ThreadPool::IsWorthIt(int64_t count, int64_t asleep) {
  State& state = *state_;
  bool awake = !state.threads.empty() && state.sleepers.load(std::memory_order_relaxed) == 0;
  if (awake || count / asleep >= 2) return true;
  auto now = std::chrono::steady_clock::now();
  return now - std::exchange(state.last, now) < kInARow;
}

void ThreadPool::Divide(int64_t count, int64_t piece, Body body, void* data) {
  State& state = *state_;
  if (state.threads.empty()) Start();
  // Ranges are whole pieces, so that none but the last is shorter than the grain.
  int64_t pieces = (count + piece - 1) / piece, parts = std::min<int64_t>(threads_, pieces);
  uint32_t loop = ++state.loop;
  for (int64_t i = parts; i-- > 0;) {  // those first whom others wake
    State::Thread& line = state.lines[static_cast<size_t>(i)];
    line.body = body;
    line.data = data;
    line.piece = piece;
    line.count = count;
    State::Share share{loop, static_cast<uint16_t>(pieces * i / parts),
                       static_cast<uint16_t>(pieces * (i + 1) / parts)};
    line.share.store(share.word(), std::memory_order_release);
  }
  state.total += static_cast<uint64_t>(pieces);
  state.Wake(0, loop);
  state.Take(0, 0, loop);
  auto done = [&] { return state.AllDone(static_cast<size_t>(parts)); };
  if (LookFor(kLetOthers, done)) return;
  state.Help(0, loop, [] { return false; });
  if (LookFor(kLookFor, done)) return;
  state.waits.store(true, std::memory_order_seq_cst);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  for (;;) {
    uint32_t finished = state.finished.load(std::memory_order_seq_cst);
    if (done()) break;
    state.finished.wait(finished, std::memory_order_seq_cst);
  }
  state.waits.store(false, std::memory_order_relaxed);
}

void ThreadPool::Stop() {
  StopSoon();
}

// False: a loop is still being divided after kStopWait, and nothing was stopped.
bool ThreadPool::StopSoon() {
  State& state = *state_;
  if (WasForked()) {
    for (std::thread& thread : state.threads) thread.detach();  // they are of the parent
    state.threads.clear();
    return true;
  }
  if (state.stopping.load(std::memory_order_acquire)) return true;
  auto end = std::chrono::steady_clock::now() + kStopWait;
  while (state.busy.exchange(true, std::memory_order_acquire)) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::yield();
  }
  state.stopping.store(true, std::memory_order_release);
  for (size_t i = 1; i < state.lines.size(); ++i) {
    state.lines[i].share.store(State::Share{state.loop + 1, 0, 0}.word(),
                               std::memory_order_seq_cst);
    state.Ring(i);
  }
  for (std::thread& thread : state.threads) thread.join();
  state.threads.clear();  // and busy it stays: loops run where they are called
  return true;
}

}  // namespace tokamak
