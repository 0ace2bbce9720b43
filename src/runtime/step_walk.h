#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "runtime/steps.h"
#include "support/result.h"

// The one executor of program steps. It decides what runs next: order, loops, branches, stop
// requests, watchers. A backend runs or enqueues single steps; it may also take several steps, or
// the iterations of a loop, as one.

namespace tokamak {

// The arrays of a step, as a watcher sees them.
struct StepArrays {
  std::vector<void*> addresses;
  std::shared_ptr<void> copies;  // owns the memory if they are copies of the arrays; else null
};

class StepBackend {
 public:
  virtual ~StepBackend() = default;

  // Runs or enqueues the first step, which is neither a loop nor a conditional. It may take
  // following steps with it: `count` is 1 and becomes their number.
  virtual Status Run(std::span<const RunStep> steps, size_t& count) = 0;
  // Reads what the steps before have written. Decides control flow.
  virtual Status Read(const BufferSlice& from, void* to, size_t bytes) = 0;
  // `on_host`: in host memory, as copies if necessary.
  virtual Result<StepArrays> ArraysOf(const RunStep& step, bool on_host) = 0;
  // Whether a horizontally fused launch cannot be watched as its single launches.
  virtual bool IsOneLaunch() const { return false; }

  // Runs a whole loop in a form of its own. False: the executor runs its iterations.
  virtual Result<bool> RunLoop(const RunStep&) { return false; }
  // If set, the executor runs that many iterations and does not compute the condition.
  virtual std::optional<uint64_t> TripCountOf(const RunStep&) const { return std::nullopt; }
  // Runs several iterations as one, `left` at most, beginning with an even one. Returns how many;
  // 0: the executor runs the next one.
  virtual Result<uint64_t> RunIterations(const RunStep&, [[maybe_unused]] uint64_t left) {
    return uint64_t{0};
  }
};

struct WalkOptions {
  const std::atomic<bool>* stop = nullptr;  // may be null
  StepWatcher* watcher = nullptr;           // may be null. Every step then runs by itself
  StepRecorder* recorder = nullptr;         // may be null. Decides control flow
};

// Runs steps in order. Returns TK6103 if it is stopped, or the first error of a step or watcher.
Status WalkSteps(std::span<const RunStep> steps, StepBackend& backend, const WalkOptions& options);

inline bool IsStopped(const std::atomic<bool>* stop) {
  return stop != nullptr && stop->load(std::memory_order_relaxed);
}
Error StopError();  // TK6103
// For backends whose steps end early.
inline Status CheckStop(const std::atomic<bool>* stop) {
  return IsStopped(stop) ? Status(StopError()) : Ok();
}

}  // namespace tokamak
