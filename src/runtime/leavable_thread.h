#pragma once

#include <future>
#include <system_error>
#include <thread>
#include <utility>

#include "runtime/process.h"

// A thread that can be detached at process exit if it does not end in time.
namespace tokamak {

// A thread of an object that lives as long as the process; ended when the process exits.
class LeavableThread {
 public:
  LeavableThread() = default;
  LeavableThread(const LeavableThread&) = delete;
  LeavableThread& operator=(const LeavableThread&) = delete;

  // Returns false if the system cannot create a thread.
  template <typename Fn>
  bool Start(Fn fn) {
    std::packaged_task<void()> task(std::move(fn));
    ended_ = task.get_future();
    try {
      thread_ = std::thread(std::move(task));
    } catch (const std::system_error&) {
      return false;
    }
    return true;
  }
  bool IsStarted() const { return thread_.joinable(); }

  // Joins it, waiting at most kStopWait. After that, or if called on the thread itself, it is
  // detached.
  void JoinOrLeave() {
    if (!thread_.joinable()) return;
    bool is_own = thread_.get_id() == std::this_thread::get_id();
    if (!is_own && ended_.wait_for(kStopWait) == std::future_status::ready) {
      thread_.join();
    } else {
      thread_.detach();
    }
  }

 private:
  std::future<void> ended_;
  std::thread thread_;
};

}  // namespace tokamak
