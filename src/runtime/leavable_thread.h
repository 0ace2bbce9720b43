#pragma once

#include <future>
#include <system_error>
#include <thread>
#include <utility>

#include "runtime/process.h"

namespace tokamak {

// A thread of something that lives as long as the process, to be ended when the process is.
class LeavableThread {
 public:
  LeavableThread() = default;
  LeavableThread(const LeavableThread&) = delete;
  LeavableThread& operator=(const LeavableThread&) = delete;

  // False: the machine gives no thread.
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

  // Waits until it has ended, at most kStopWait; then, and when it is the thread itself that asks,
  // it is left to itself.
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
