#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "runtime/guarded_thread.h"

// Runs code of plugins so that its faults do not reach the compiler (runtime/guarded_thread.h).

namespace tokamak {

// One call of a plugin's function. It owns all that the function can reach, because a call that
// crashes or hangs is abandoned with its thread.
class PluginCallback : public GuardedWork {
 public:
  void Run() final;
  // Why the call failed; empty if it did not.
  const std::string& failure() const { return failure_; }

 protected:
  virtual void Call() = 0;

 private:
  std::string failure_;
};

// Processor time of one call without a limit of its own. Chosen: passes over the largest programs
// take less than a second.
inline constexpr std::chrono::milliseconds kCallbackTime{10'000};

// How a call ended.
struct CallOutcome {
  // "it crashes with SIGSEGV", "it throws an exception: ...", what it passed to host->fail. Empty
  // if it ended in order.
  std::string why;
  // It crashed or hung: the call must not be accessed.
  bool is_abandoned = false;

  bool ok() const { return why.empty(); }
};
CallOutcome Invoke(const std::shared_ptr<PluginCallback>& call,
                   std::chrono::milliseconds limit = kCallbackTime);

// States why the call that this thread runs fails. No effect elsewhere.
void FailCallback(std::string why);

}  // namespace tokamak
