#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "runtime/process.h"

// Worker threads with a task queue.
namespace tokamak {

// Work for another thread. May delete itself in Run.
class Task {
 public:
  // `stopped`: the threads are ending; report that instead of working.
  virtual void Run(bool stopped) = 0;

 protected:
  Task() = default;
  virtual ~Task() = default;
};

// Threads that take tasks from one FIFO queue. With one thread (a device's worker), tasks run in
// order. The threads start with the first task.
class Workers final : public Stoppable {
 public:
  Workers(std::string name, int threads);
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;
  ~Workers();

  // Queues the task; after Stop, runs it at once as stopped.
  void Post(Task* task);
  // Polled by tasks that should end early.
  const std::atomic<bool>& stopping() const;
  // Runs queued tasks as stopped. Waits up to kStopWait for running tasks, and not at all for those
  // that are Away: they end on their own. A task of these workers may call it.
  void Stop() override;

  int threads() const { return count_; }

  // Marks the time that a task of these workers may wait for a lock of the host, such as Python's
  // GIL: the caller of Stop may hold it.
  class Away {
   public:
    explicit Away(Workers& workers);
    ~Away();
    Away(const Away&) = delete;
    Away& operator=(const Away&) = delete;

   private:
    struct Count;
    std::unique_ptr<Count> count_;
  };

 private:
  struct State;
  void StartLocked();
  static void Loop(const std::shared_ptr<State>& state);

  std::string name_;
  int count_;
  std::shared_ptr<State> state_;  // shared with the threads: one that is Away may outlive the rest
};

// Marks that this thread is in a host function called by a program. A program launched from there
// must not wait for the worker that waits for the function.
class HostScope {
 public:
  HostScope();
  ~HostScope();
  HostScope(const HostScope&) = delete;
  HostScope& operator=(const HostScope&) = delete;
  static bool IsInside();
};

// Waits until no Workers of the process have queued or running tasks, at most `milliseconds` (< 0:
// no limit). Returns whether that is so.
bool WaitAllIdle(int64_t milliseconds);

// The pool of the process: one thread per processor. Never destroyed; stopped at exit.
Workers& Pool();

}  // namespace tokamak
