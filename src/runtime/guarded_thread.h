#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>

// Runs work that may crash or never terminate on a separate thread. A thread that receives a fatal
// signal is parked forever, with its stack and its locks, and the process continues.
// docs/choices/2026-11-17-code-generation-faults.md gives the reasons and the limits.

namespace tokamak {

// Work must own everything that it uses: an abandoned thread may refer to it forever.
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
  // Longer than processor_time, because a busy or suspended machine is no reason to abandon work.
  // It ends work that is blocked forever.
  std::chrono::milliseconds wall_time;
};

// Returns an empty string if the work completed, else the reason why it was abandoned: "SIGSEGV",
// "60 s of processor time are used up". The caller must not access abandoned work.
std::string RunGuarded(std::shared_ptr<GuardedWork> work, const GuardedLimits& limits);

// Abandons the work that this thread runs under RunGuarded, and does not return. Does nothing on
// any other thread. For a library's handlers of its fatal errors.
void AbandonGuardedWork(std::string_view why);

}  // namespace tokamak
