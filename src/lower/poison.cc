#include "lower/poison.h"

#include <algorithm>
#include <utility>

namespace tokamak {
namespace {

using Life = MemoryPlan::Life;

// Walks the steps in program order, loop bodies once, and in parallel the arena values in the order
// of their deaths.
class Poisoner {
 public:
  explicit Poisoner(const MemoryPlan& memory) : lives_(memory.Lives()) {}

  void Walk(std::vector<RunStep>& steps) {
    std::vector<RunStep> all;
    for (RunStep& step : steps) {
      AddDead(all, step.at);
      // No steps are inserted into horizontally fused launches, whose kernels run concurrently, or
      // among the closing copies of a loop (alternate.h).
      size_t blocks = step.kind == StepKind::kHorizontal ? 0
                      : step.kind == StepKind::kWhile    ? 2
                                                         : step.blocks.size();
      for (size_t i = 0; i < blocks; ++i) Walk(step.blocks[i]);
      last_ = std::max(last_, step.at);
      all.push_back(std::move(step));
    }
    // The enclosing step reads some values after this list (a loop its condition).
    if (!steps.empty()) AddDead(all, last_ + 1);
    steps = std::move(all);
  }

 private:
  // Poisons values whose last use precedes `now` and whose bytes are not in use by another value.
  void AddDead(std::vector<RunStep>& steps, int64_t now) {
    for (; next_ < lives_.size() && lives_[next_].last < now; ++next_) {
      const Life& dead = lives_[next_];
      if (dead.bytes == 0 || !IsFree(dead, now)) continue;
      steps.push_back({.kind = StepKind::kPoison,
                       .slices = {{0, dead.offset}},
                       .bytes = dead.bytes,
                       .at = now});
    }
  }

  bool IsFree(const Life& dead, int64_t now) const {
    for (const Life& other : lives_) {
      bool overlaps =
          other.offset < dead.offset + dead.bytes && dead.offset < other.offset + other.bytes;
      if (overlaps && other.def < now && other.last >= now) return false;
    }
    return true;
  }

  std::vector<Life> lives_;
  size_t next_ = 0;
  int64_t last_ = 0;
};

}  // namespace

void PoisonFreed(std::vector<RunStep>& steps, const MemoryPlan& memory) {
  // Values above which only the initial poisoning is done. Chosen: the walk is quadratic.
  constexpr size_t kMaxLives = 20000;
  if (memory.Lives().size() <= kMaxLives) Poisoner(memory).Walk(steps);
  if (memory.arena_bytes() == 0) return;
  steps.insert(steps.begin(),
               {.kind = StepKind::kPoison, .slices = {{0, 0}}, .bytes = memory.arena_bytes()});
}

}  // namespace tokamak
