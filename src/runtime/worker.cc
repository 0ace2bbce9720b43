#include "runtime/worker.h"

#include <algorithm>
#include <chrono>
#include <pthread.h>
#include <system_error>

namespace tokamak {
namespace {

// Tasks of all Workers. A task counts until its Run is over, and whatever it makes ready is posted
// by then: zero means that nothing is left.
std::atomic<int64_t> all_pending{0};

}  // namespace

Workers::Workers(std::string name, int threads) : name_(std::move(name)), count_(threads) {
  GuardAtExit(this);
}

Workers::~Workers() {
  Unguard(this);
  Stop();
}

void Workers::StartLocked() {
  for (int i = 0; i < count_; ++i) {
    try {
      threads_.emplace_back([this] { Loop(); });
    } catch (const std::system_error&) {
      return;  // fewer threads do; with none, Post runs the task itself
    }
    pthread_setname_np(threads_.back().native_handle(), name_.substr(0, 15).c_str());
  }
}

void Workers::Post(Task* task) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (threads_.empty() && !stopping_.load(std::memory_order_relaxed)) StartLocked();
    if (!threads_.empty() && !stopping_.load(std::memory_order_relaxed)) {
      pending_.fetch_add(1, std::memory_order_relaxed);
      all_pending.fetch_add(1, std::memory_order_relaxed);
      queue_.push_back(task);
      filled_.notify_one();
      return;
    }
  }
  task->Run(stopping_.load(std::memory_order_relaxed));
}

void Workers::Loop() {
  std::unique_lock<std::mutex> lock(mutex_);
  for (;;) {
    filled_.wait(lock, [this] { return !queue_.empty() || stopping_.load(); });
    if (queue_.empty()) return;
    Task* task = queue_.front();
    queue_.pop_front();
    lock.unlock();
    task->Run(stopping_.load(std::memory_order_relaxed));
    lock.lock();
    pending_.fetch_sub(1, std::memory_order_acq_rel);
    all_pending.fetch_sub(1, std::memory_order_acq_rel);
  }
}

void Workers::Stop() {
  if (WasForked()) {
    for (std::thread& thread : threads_) thread.detach();  // they are of the parent
    threads_.clear();
    return;
  }
  std::vector<std::thread> threads;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stopping_.store(true);
    threads.swap(threads_);
    filled_.notify_all();
  }
  for (std::thread& thread : threads) {
    // At exit, when a task of ours ends the process: nobody is left to join it.
    if (thread.get_id() == std::this_thread::get_id()) {
      thread.detach();
    } else {
      thread.join();
    }
  }
}

bool Workers::IsOwnThread() {
  std::lock_guard<std::mutex> lock(mutex_);
  return std::any_of(threads_.begin(), threads_.end(), [](const std::thread& thread) {
    return thread.get_id() == std::this_thread::get_id();
  });
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
