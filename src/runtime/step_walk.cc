// Executes the steps of a program on a backend.
//
//   while, blocks:    0 condition | 1 body | 2 copies of carried values
//   double-buffered:  0, 1 even iterations | 3, 4 odd ones | 2 once, after an odd trip count
//
// `stop` is polled between steps, so a run ends at the next one.

#include "runtime/step_walk.h"

namespace tokamak {
namespace {

class StepWalk {
 public:
  StepWalk(StepBackend& backend, const WalkOptions& options)
      : backend_(backend), options_(options) {}

  Status Run(std::span<const RunStep> steps) {
    while (!steps.empty()) {
      if (IsStopped(options_.stop)) [[unlikely]]
        return StopError();
      size_t count = 1;
      TOK_RETURN_IF_ERROR(RunFirst(steps, count));
      steps = steps.subspan(count);
    }
    return Ok();
  }

 private:
  Status RunFirst(std::span<const RunStep> steps, size_t& count) {
    const RunStep& step = steps.front();
    if (step.kind == StepKind::kWhile) return RunWhile(step);
    if (step.kind == StepKind::kConditional) return RunConditional(step);
    if (options_.watcher == nullptr) [[likely]]
      return backend_.Run(steps, count);
    return RunWatched(step);
  }

  Status RunWatched(const RunStep& step) {
    size_t count = 1;
    std::span<const RunStep> alone(&step, 1);
    if (step.kind == StepKind::kHorizontal && !backend_.IsOneLaunch()) return Run(step.blocks[0]);
    if (step.kind == StepKind::kCopy || step.kind == StepKind::kPoison)
      return backend_.Run(alone, count);
    StepWatcher& watcher = *options_.watcher;
    TOK_TRY(StepArrays before, backend_.ArraysOf(step, watcher.ReadsArrays()));
    TOK_RETURN_IF_ERROR(watcher.Before(step, before.addresses));
    TOK_RETURN_IF_ERROR(backend_.Run(alone, count));
    if (before.copies == nullptr) return watcher.After(step, before.addresses);
    TOK_TRY(StepArrays after, backend_.ArraysOf(step, watcher.ReadsArrays()));
    return watcher.After(step, after.addresses);
  }

  Status RunWhile(const RunStep& loop) {
    bool is_done = false;
    if (options_.watcher == nullptr) {
      TOK_TRY(is_done, backend_.RunLoop(loop));
    }
    if (is_done) return Ok();
    std::optional<uint64_t> trip_count = backend_.TripCountOf(loop);
    return trip_count ? RunIterations(loop, *trip_count) : RunWhileTrue(loop);
  }

  // A loop with a known trip count: the condition is not computed.
  Status RunIterations(const RunStep& loop, uint64_t trip_count) {
    bool odd = false;
    for (uint64_t done = 0; done < trip_count;) {
      if (IsStopped(options_.stop)) return StopError();
      uint64_t together = 0;
      if (!odd && options_.watcher == nullptr) {
        TOK_TRY(together, backend_.RunIterations(loop, trip_count - done));
      }
      if (together == 0) {
        TOK_RETURN_IF_ERROR(RunIteration(loop, odd));
        together = 1;
      }
      done += together;
    }
    return odd ? Run(loop.blocks[2]) : Ok();
  }

  Status RunWhileTrue(const RunStep& loop) {
    bool odd = false;
    for (bool asks = !loop.runs_first;; asks = true) {
      if (IsStopped(options_.stop)) return StopError();
      bool goes_on = true;
      if (asks) {
        TOK_RETURN_IF_ERROR(Run(loop.blocks[odd ? 3 : 0]));
        TOK_TRY(goes_on, GoesOn(loop, odd));
      }
      if (!goes_on) break;
      TOK_RETURN_IF_ERROR(RunIteration(loop, odd));
    }
    return odd ? Run(loop.blocks[2]) : Ok();
  }

  // With two bodies, even and odd iterations alternate; otherwise carried values are copied.
  Status RunIteration(const RunStep& loop, bool& odd) {
    TOK_RETURN_IF_ERROR(Run(loop.blocks[odd ? 4 : 1]));
    if (loop.blocks.size() <= 3) return Run(loop.blocks[2]);
    odd = !odd;
    return Ok();
  }

  Result<bool> GoesOn(const RunStep& loop, bool odd) {
    if (options_.recorder != nullptr) return options_.recorder->GoesOn(loop);
    uint8_t goes_on = 0;
    TOK_RETURN_IF_ERROR(backend_.Read(loop.slices[odd ? 1 : 0], &goes_on, 1));
    return goes_on != 0;
  }

  Status RunConditional(const RunStep& step) {
    size_t count = step.blocks.size(), block = 0;
    if (options_.recorder != nullptr) {
      block = options_.recorder->BlockOf(step);
    } else if (step.is_pred) {
      uint8_t is_true = 0;
      TOK_RETURN_IF_ERROR(backend_.Read(step.slices[0], &is_true, 1));
      block = is_true != 0 ? 0 : 1;
    } else {
      int32_t number = 0;
      TOK_RETURN_IF_ERROR(backend_.Read(step.slices[0], &number, sizeof number));
      bool is_block = number >= 0 && static_cast<size_t>(number) < count;
      block = is_block ? static_cast<size_t>(number) : count - 1;
    }
    return Run(step.blocks[block]);
  }

  StepBackend& backend_;
  const WalkOptions& options_;
};

}  // namespace

Error StopError() {
  return MakeError(ErrorCode::kStopped, "run: the program was stopped");
}

Status WalkSteps(std::span<const RunStep> steps, StepBackend& backend, const WalkOptions& options) {
  return StepWalk(backend, options).Run(steps);
}

}  // namespace tokamak
