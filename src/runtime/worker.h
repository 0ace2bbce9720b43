#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
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
  bool IsIdle() const;
  // For tasks that look: they should come to an end.
  const std::atomic<bool>& stopping() const;
  // What is queued runs as stopped. What runs is waited for up to kStopWait, and not at all when it
  // is away (below): then it ends by itself. May be called by a task of its own.
  void Stop() override;

  int threads() const { return count_; }

  // For the time that a task of these workers may wait for a lock of the host, such as Python's:
  // whoever stops the workers may hold it.
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
  std::shared_ptr<State> state_;  // of the threads too: one that is away may outlive the rest
};

// Marks that this thread is in a function of the host, called by a program. A program that is
// launched from there must not wait for the worker that waits for the function.
class HostScope {
 public:
  HostScope();
  ~HostScope();
  HostScope(const HostScope&) = delete;
  HostScope& operator=(const HostScope&) = delete;
  static bool IsInside();
};

// Waits until no Workers of the process have anything queued or running, or `milliseconds` have
// passed (< 0: any time); whether it came so.
bool WaitAllIdle(int64_t milliseconds);

// The one pool of the process: a thread per processor. Never destroyed; stopped at exit.
Workers& Pool();

}  // namespace tokamak
