#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "runtime/process.h"

namespace tokamak {

// Work to be done by another thread. Deletes itself in Run if it wants to.
class Task {
 public:
  // `stopped`: the threads are ending; report that instead of working.
  virtual void Run(bool stopped) = 0;

 protected:
  Task() = default;
  virtual ~Task() = default;
};

// Threads that take tasks from one queue, first come first served. One thread: a device's worker,
// whose tasks run in order. They start with the first task.
class Workers final : public Stoppable {
 public:
  Workers(std::string name, int threads);
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;
  ~Workers();

  // The task runs later, or, after Stop, at once as stopped.
  void Post(Task* task);
  // Nothing is queued or running; the answer may be old by the time it is read.
  bool IsIdle() const { return pending_.load(std::memory_order_acquire) == 0; }
  // For tasks that look: they should come to an end.
  const std::atomic<bool>& stopping() const { return stopping_; }
  // What is queued runs as stopped, what runs is waited for. Any thread but its own.
  void Stop() override;

  int threads() const { return count_; }
  // Whether the caller is one of its threads.
  bool IsOwnThread();

 private:
  void Loop();
  void StartLocked();

  std::string name_;
  int count_;
  std::mutex mutex_;
  std::condition_variable filled_;
  std::deque<Task*> queue_;
  std::vector<std::thread> threads_;
  std::atomic<int64_t> pending_{0};
  std::atomic<bool> stopping_{false};
};

// Waits until no Workers of the process have anything queued or running, or `milliseconds` have
// passed (< 0: any time); whether it came so.
bool WaitAllIdle(int64_t milliseconds);

// The one pool of the process: a thread per processor. Never destroyed; stopped at exit.
Workers& Pool();

}  // namespace tokamak
