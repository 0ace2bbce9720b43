#include "runtime/worker.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <pthread.h>
#include <system_error>

namespace tokamak {
namespace {

// Tasks of all Workers. A task counts until its Run returns, and it has posted all follow-up tasks
// by then: zero means that nothing is left.
std::atomic<int64_t> all_pending{0};

thread_local int host_depth = 0;

}  // namespace

struct Workers::State {
  std::mutex mutex;
  std::condition_variable filled, changed;
  std::deque<Task*> queue;
  std::vector<std::thread> threads;
  int live = 0, away = 0;  // threads in their loop, and those of them that are Away
  std::atomic<int64_t> pending{0};
  std::atomic<bool> stopping{false};
};

struct Workers::Away::Count {
  std::shared_ptr<State> state;
};

Workers::Away::Away(Workers& workers) : count_(std::make_unique<Count>(Count{workers.state_})) {
  std::lock_guard<std::mutex> lock(count_->state->mutex);
  ++count_->state->away;
  count_->state->changed.notify_all();
}

Workers::Away::~Away() {
  std::lock_guard<std::mutex> lock(count_->state->mutex);
  --count_->state->away;
}

Workers::Workers(std::string name, int threads)
    : name_(std::move(name)), count_(threads), state_(std::make_shared<State>()) {
  GuardAtExit(this);
}

Workers::~Workers() {
  Unguard(this);
  Stop();
}

const std::atomic<bool>& Workers::stopping() const {
  return state_->stopping;
}

void Workers::StartLocked() {
  for (int i = 0; i < count_; ++i) {
    try {
      state_->threads.emplace_back([state = state_] { Loop(state); });
    } catch (const std::system_error&) {
      return;  // fewer threads suffice; with none, Post runs the task itself
    }
    ++state_->live;
    pthread_setname_np(state_->threads.back().native_handle(), name_.substr(0, 15).c_str());
  }
}

void Workers::Post(Task* task) {
  State& state = *state_;
  {
    std::lock_guard<std::mutex> lock(state.mutex);
    bool stopping = state.stopping.load(std::memory_order_relaxed);
    if (state.threads.empty() && !stopping) StartLocked();
    if (!state.threads.empty() && !stopping) {
      state.pending.fetch_add(1, std::memory_order_relaxed);
      all_pending.fetch_add(1, std::memory_order_relaxed);
      state.queue.push_back(task);
      state.filled.notify_one();
      return;
    }
  }
  task->Run(state.stopping.load(std::memory_order_relaxed));
}

void Workers::Loop(const std::shared_ptr<State>& state) {
  std::unique_lock<std::mutex> lock(state->mutex);
  for (;;) {
    state->filled.wait(lock, [&] { return !state->queue.empty() || state->stopping.load(); });
    if (state->queue.empty()) break;
    Task* task = state->queue.front();
    state->queue.pop_front();
    lock.unlock();
    task->Run(state->stopping.load(std::memory_order_relaxed));
    lock.lock();
    state->pending.fetch_sub(1, std::memory_order_acq_rel);
    all_pending.fetch_sub(1, std::memory_order_acq_rel);
  }
  --state->live;
  state->changed.notify_all();
}

void Workers::Stop() {
  State& state = *state_;
  if (WasForked()) {
    for (std::thread& thread : state.threads) thread.detach();  // they belong to the parent
    state.threads.clear();
    return;
  }
  std::vector<std::thread> threads;
  std::deque<Task*> left;
  bool ended = false;
  {
    std::unique_lock<std::mutex> lock(state.mutex);
    state.stopping.store(true);
    state.filled.notify_all();
    auto is_this = [](const std::thread& thread) {
      return thread.get_id() == std::this_thread::get_id();
    };
    // Threads that were abandoned before are not waited for again.
    if (!state.threads.empty() && std::none_of(state.threads.begin(), state.threads.end(), is_this))
      state.changed.wait_for(lock, kStopWait, [&] { return state.live <= state.away; });
    ended = state.live == 0;
    threads.swap(state.threads);
    left.swap(state.queue);  // queued behind a long task; callers should not wait for them either
  }
  for (Task* task : left) {
    task->Run(true);
    state.pending.fetch_sub(1, std::memory_order_acq_rel);
    all_pending.fetch_sub(1, std::memory_order_acq_rel);
  }
  for (std::thread& thread : threads) {
    if (ended) {
      thread.join();
    } else {
      thread.detach();
    }
  }
}

HostScope::HostScope() {
  ++host_depth;
}

HostScope::~HostScope() {
  --host_depth;
}

bool HostScope::IsInside() {
  return host_depth > 0;
}

bool WaitAllIdle(int64_t milliseconds) {
  auto begin = std::chrono::steady_clock::now();
  while (all_pending.load(std::memory_order_acquire) != 0) {
    if (milliseconds >= 0 &&
        std::chrono::steady_clock::now() - begin > std::chrono::milliseconds(milliseconds))
      return false;
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  return true;
}

Workers& Pool() {
  static auto* pool = new Workers(
      "tokamak-pool", static_cast<int>(std::max(1u, std::thread::hardware_concurrency())));
  return *pool;
}

}  // namespace tokamak
