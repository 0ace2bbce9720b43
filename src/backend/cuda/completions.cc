#include "backend/cuda/completions.h"

#include <chrono>
#include <cstring>

namespace tokamak::cuda {
namespace {

// How long to spin before blocking. Chosen; no measurement on record.
constexpr std::chrono::microseconds kLooks{60};

// About a microsecond: continuous polling of the driver delays the threads that enqueue work.
void Pause() {
  for (int i = 0; i < 20; ++i) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#else
    std::atomic_signal_fence(std::memory_order_seq_cst);
#endif
  }
}

// Spins for the lock. All holders release it quickly; sleeping and waking takes ten times as long
// as a call.
std::unique_lock<std::mutex> Locked(std::mutex& mutex) {
  for (auto end = std::chrono::steady_clock::now() + kLooks; std::chrono::steady_clock::now() < end;
       Pause())
    if (std::unique_lock<std::mutex> lock(mutex, std::try_to_lock); lock.owns_lock()) return lock;
  return std::unique_lock<std::mutex>(mutex);
}

}  // namespace

void Completions::Add(Handle stream, Ref<Event> done, Arrived arrived) {
  std::unique_lock<std::mutex> lock = Locked(mutex_);
  if (stopping_) {
    lock.unlock();
    done->Fire(std::make_shared<const Error>(
        MakeError(ErrorCode::kStopped, "cuda: the process ended before the work was done")));
    return;
  }
  if (!thread_.IsStarted() && thread_.Start([this] { Loop(); })) GuardAtExit(this);
  Waiting next{nullptr, 0, std::move(done), arrived};
  if (!free_events_.empty()) {
    next.event = free_events_.front();
    free_events_.pop_front();
  } else {
    next.result = api_.create_event(&next.event, kEventNoTiming | kEventBlockingSync);
  }
  if (next.result == 0) next.result = api_.record(next.event, stream);
  if (!thread_.IsStarted()) {  // no thread could be created: the caller waits
    lock.unlock();
    return Serve(std::move(next));
  }
  waiting_.push_back(std::move(next));
  bool wakes = is_asleep_;
  lock.unlock();
  // After unlocking: the polling thread takes the lock as soon as it sees the count.
  count_.fetch_add(1, std::memory_order_release);
  if (wakes) wake_.notify_one();
}

// Polls for a while, because work is short and sleeping and waking takes longer; then blocks.
int Completions::WaitFor(Handle event) const {
  auto end = std::chrono::steady_clock::now() + kLooks;
  do {
    int result = api_.query(event);
    if (result != kNotReady) return result;
    Pause();
  } while (std::chrono::steady_clock::now() < end);
  return api_.wait(event);
}

void Completions::Loop() {
  api_.set_current(context_);
  while (true) {
    auto end = std::chrono::steady_clock::now() + kLooks;
    while (count_.load(std::memory_order_acquire) == 0 && std::chrono::steady_clock::now() < end)
      Pause();
    std::unique_lock<std::mutex> lock = Locked(mutex_);
    is_asleep_ = true;
    wake_.wait(lock, [&] { return stopping_ || !waiting_.empty(); });
    is_asleep_ = false;
    if (waiting_.empty()) return;
    Waiting next = std::move(waiting_.front());
    waiting_.pop_front();
    count_.fetch_sub(1, std::memory_order_relaxed);
    lock.unlock();
    Serve(std::move(next));
  }
}

// Waits for a CUDA event and runs its continuation.
void Completions::Serve(Waiting next) {
  int result = next.result == 0 ? WaitFor(next.event) : next.result;
  Arrived& arrived = next.arrived;
  if (arrived.slots != nullptr) {
    if (result == 0) std::memcpy(arrived.to, arrived.slot.data, arrived.bytes);
    arrived.slots->Release(arrived.slot);
  }
  next.done->Fire(result == 0 ? nullptr : error_source_.ErrorOf(result));
  next.done = {};
  std::unique_lock<std::mutex> lock = Locked(mutex_);
  if (next.event != nullptr) free_events_.push_back(next.event);
}

void Completions::Stop() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (stopping_) return;
    stopping_ = true;
  }
  wake_.notify_one();
  // The continuation may be what ends the process, and a kernel may take arbitrarily long.
  thread_.JoinOrLeave();
}

}  // namespace tokamak::cuda
