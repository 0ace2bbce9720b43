// One parallel loop runs at a time, divided into chunks. Each thread has an equal contiguous range
// of them, and its own cache line with its range, which it consumes from the front, and a count of
// the chunks that it has run. So threads that are on time do not contend, and a thread processes
// the same data in consecutive loops. A thread that finishes early first polls for the next loop,
// which often follows at once, and then steals chunks from threads that sleep, are late or have
// more to do.
//
//   line of thread t:  [ loop number | next ... end )   body, data, chunk size   done
//
// A range is one 64-bit word that includes the loop number: a thread that takes a chunk knows its
// loop, and the loop, with everything that it reads, stays alive until the chunk is counted as
// done.
//
// Waiting threads poll for a while, then sleep: waking takes about 5 us, and more on a busy
// machine; polling occupies a processor.

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

// How long threads poll before they sleep. Chosen; 20 times the cost of waking.
constexpr auto kLookFor = std::chrono::microseconds(100);
// How long a thread polls for the next loop before it steals from others
// (docs/choices/2026-11-17-thread-lines.md).
constexpr auto kLetOthers = std::chrono::microseconds(1);
// Loops that follow each other within this time are worth waking threads for
// (docs/choices/2026-11-17-thread-lines.md).
constexpr auto kInARow = std::chrono::microseconds(200);
// Chunks of a range: enough to balance threads of different speed. Taking one costs about 50 ns.
// Chosen.
constexpr int64_t kChunksPerThread = 12;

void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Polls; returns whether `done()` became true.
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

// TOKAMAK_THREADS, else one per processor. An invalid number is ignored.
int ThreadsOfProcess() {
  // Maximum number of threads. Chosen.
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
  // Chunks next ... end - 1 of loop `loop`.
  struct ThreadRange {
    uint32_t loop;
    uint16_t next, end;

    static ThreadRange Of(uint64_t word) {
      return {static_cast<uint32_t>(word >> 32), static_cast<uint16_t>(word >> 16),
              static_cast<uint16_t>(word)};
    }
    uint64_t word() const { return uint64_t{loop} << 32 | uint64_t{next} << 16 | end; }
  };
  // Two cache lines: processors prefetch them in pairs.
  struct alignas(128) Thread {
    std::atomic<uint64_t> range{0};
    std::atomic<uint64_t> done{0};  // chunks that this thread has run, in total
    // The loop of the range.
    Body body = nullptr;
    void* data = nullptr;
    int64_t chunk = 1, count = 0;
    std::atomic<uint32_t> bell{0};
    std::atomic<bool> sleeps{false};
  };

  std::vector<std::thread> threads;
  std::vector<Thread> lines;
  std::atomic<bool> busy{false};  // a loop is running
  // State of the thread that started the loop.
  uint32_t loop = 0;
  uint64_t total = 0;           // chunks of all loops, in total
  std::vector<uint64_t> known;  // the threads' done counts when last read
  std::chrono::steady_clock::time_point last{};
  alignas(128) std::atomic<int32_t> sleepers{0};
  std::atomic<bool> stopping{false};
  // Whether the thread that started the loop sleeps until the others are done.
  std::atomic<bool> waits{false};
  std::atomic<uint32_t> finished{0};

  explicit State(int count)
      : lines(static_cast<size_t>(count)), known(static_cast<size_t>(count)) {}

  ThreadRange RangeOf(size_t number) const {
    return ThreadRange::Of(lines[number].range.load(std::memory_order_acquire));
  }

  // Thread `number` runs the remaining range of thread `of` if it belongs to this loop.
  void Take(size_t number, size_t of, uint32_t of_loop) {
    Thread& line = lines[of];
    uint64_t word = line.range.load(std::memory_order_relaxed);
    for (;;) {
      ThreadRange range = ThreadRange::Of(word);
      if (range.loop != of_loop || range.next >= range.end) return;
      int64_t at = range.next++;
      if (!line.range.compare_exchange_weak(word, range.word(), std::memory_order_acquire))
        continue;
      line.body(line.data, at * line.chunk, std::min((at + 1) * line.chunk, line.count));
      lines[number].done.fetch_add(1, std::memory_order_seq_cst);
      if (waits.load(std::memory_order_seq_cst)) {
        finished.fetch_add(1, std::memory_order_seq_cst);
        finished.notify_one();
      }
      word = line.range.load(std::memory_order_relaxed);
    }
  }
  template <typename Until>
  void Help(size_t number, uint32_t of_loop, Until&& until) {
    for (size_t i = 1; i < lines.size() && !until(); ++i)
      Take(number, (number + i) % lines.size(), of_loop);
  }
  // Threads wake each other in a tree: each wakes two more if they have a range and sleep. A thread
  // that falls asleep meanwhile checks its range first.
  void Wake(size_t number, uint32_t of_loop) {
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (sleepers.load(std::memory_order_seq_cst) == 0) return;
    for (size_t i = 2 * number + 1; i <= 2 * number + 2 && i < lines.size(); ++i)
      if (RangeOf(i).loop == of_loop && lines[i].sleeps.load(std::memory_order_seq_cst)) Ring(i);
  }
  void Ring(size_t number) {
    lines[number].bell.fetch_add(1, std::memory_order_seq_cst);
    lines[number].bell.notify_one();
  }
  // Whether the first `participants` threads have run all chunks.
  bool AllDone(size_t participants) {
    uint64_t sum = 0;
    for (size_t i = 0; i < participants; ++i)
      known[i] = lines[i].done.load(std::memory_order_acquire);
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
      return;  // fewer suffice: the others steal the ranges without a thread
    }
    pthread_setname_np(state_->threads.back().native_handle(), "tokamak-loop");
  }
}

void ThreadPool::Serve(int thread) {
  State& state = *state_;
  auto number = static_cast<size_t>(thread);
  State::Thread& own = state.lines[number];
  uint32_t seen = 0;
  auto changed = [&] { return state.RangeOf(number).loop != seen; };
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
    seen = state.RangeOf(number).loop;
    if (state.stopping.load(std::memory_order_acquire)) return;
    state.Wake(number, seen);
    state.Take(number, number, seen);
    if (!LookFor(kLetOthers, changed)) state.Help(number, seen, changed);
  }
}

void ThreadPool::For(int64_t count, int64_t min_chunk, int64_t asleep, Body body, void* data) {
  if (count <= 0) return;
  min_chunk = std::max<int64_t>(min_chunk, 1);
  if (asleep == 0) asleep = min_chunk == 1 ? 1 : kSleepingChunkFactor * min_chunk;
  int64_t participants = std::min<int64_t>(threads_, count / min_chunk);
  if (participants < 2 || WasForked() || state_->busy.exchange(true, std::memory_order_acquire)) {
    body(data, 0, count);
    return;
  }
  if (IsWorthIt(count, asleep)) {
    // Rather one more small chunk than larger ones: a thread may get one chunk too many.
    Divide(count, std::max(min_chunk, count / (participants * kChunksPerThread)), body, data);
    state_->busy.store(false, std::memory_order_release);
  } else {
    state_->busy.store(false, std::memory_order_release);
    body(data, 0, count);
  }
}

// Awake threads are cheap to use. Sleeping ones are woken for a large loop, or for one in a
// sequence.
bool ThreadPool::IsWorthIt(int64_t count, int64_t asleep) {
  State& state = *state_;
  bool awake = !state.threads.empty() && state.sleepers.load(std::memory_order_relaxed) == 0;
  if (awake || count / asleep >= 2) return true;
  auto now = std::chrono::steady_clock::now();
  return now - std::exchange(state.last, now) < kInARow;
}

void ThreadPool::Divide(int64_t count, int64_t chunk, Body body, void* data) {
  State& state = *state_;
  if (state.threads.empty()) Start();
  // Ranges are whole chunks, so that none but the last is shorter than min_chunk.
  int64_t chunks = (count + chunk - 1) / chunk, participants = std::min<int64_t>(threads_, chunks);
  uint32_t loop = ++state.loop;
  for (int64_t i = participants; i-- > 0;) {  // threads that others wake come first
    State::Thread& line = state.lines[static_cast<size_t>(i)];
    line.body = body;
    line.data = data;
    line.chunk = chunk;
    line.count = count;
    State::ThreadRange range{loop, static_cast<uint16_t>(chunks * i / participants),
                             static_cast<uint16_t>(chunks * (i + 1) / participants)};
    line.range.store(range.word(), std::memory_order_release);
  }
  state.total += static_cast<uint64_t>(chunks);
  state.Wake(0, loop);
  state.Take(0, 0, loop);
  auto done = [&] { return state.AllDone(static_cast<size_t>(participants)); };
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

// Returns false, and stops nothing, if a loop is still running after kStopWait.
bool ThreadPool::StopSoon() {
  State& state = *state_;
  if (WasForked()) {
    for (std::thread& thread : state.threads) thread.detach();  // they belong to the parent
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
    state.lines[i].range.store(State::ThreadRange{state.loop + 1, 0, 0}.word(),
                               std::memory_order_seq_cst);
    state.Ring(i);
  }
  for (std::thread& thread : state.threads) thread.join();
  state.threads.clear();  // `busy` stays set: loops run on the calling thread
  return true;
}

}  // namespace tokamak
