#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>

// Work that may crash or never end, on a thread of its own. A thread that receives a fatal signal
// is parked for ever, with its stack and its locks, and the process goes on.
// docs/choices/2026-11-17-code-generation-faults.md gives the reasons and the limits.

namespace tokamak {

// What a thread that is abandoned refers to must stay: work owns all that it uses.
class GuardedWork {
 public:
  GuardedWork() = default;
  GuardedWork(const GuardedWork&) = delete;
  GuardedWork& operator=(const GuardedWork&) = delete;
  virtual ~GuardedWork() = default;
  virtual void Run() = 0;
};

struct GuardedLimits {
  std::chrono::milliseconds processor_time;
  // Longer than the above: a busy or suspended machine is no reason to give up. It ends work that
  // waits for something that never comes.
  std::chrono::milliseconds wall_time;
};

// "": the work was done. Else why it was abandoned: "SIGSEGV", "60 s of processor time are used
// up". Whoever gets a reason must not touch the work any more.
std::string RunGuarded(std::shared_ptr<GuardedWork> work, const GuardedLimits& limits);

// Abandons the work that this thread runs under RunGuarded, and does not return. Does nothing on
// any other thread. For a library's handlers of its fatal errors.
void AbandonGuardedWork(std::string_view why);

}  // namespace tokamak
