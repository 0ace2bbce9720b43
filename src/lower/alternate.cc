#include "lower/alternate.h"

#include <cstddef>

namespace tokamak {
namespace {

// Steps of a loop (condition and body) above which it is not duplicated. Chosen: bounds program
// size.
constexpr size_t kAlternateMaxSteps = 4096;

size_t CountOf(const std::vector<RunStep>& steps) {
  size_t count = steps.size();
  for (const RunStep& step : steps)
    for (const std::vector<RunStep>& block : step.blocks) count += CountOf(block);
  return count;
}

// Swaps the two buffers of a copy. They are live throughout the loop, so no other value of the loop
// shares them.
void Exchange(BufferSlice& slice, const std::vector<RunStep>& copies) {
  for (const RunStep& copy : copies) {
    if (slice == copy.slices[0]) {
      slice = copy.slices[1];
      return;
    }
    if (slice == copy.slices[1]) {
      slice = copy.slices[0];
      return;
    }
  }
}

void Exchange(std::vector<RunStep>& steps, const std::vector<RunStep>& copies) {
  for (RunStep& step : steps) {
    for (BufferSlice& slice : step.slices) Exchange(slice, copies);
    for (std::vector<RunStep>& block : step.blocks) Exchange(block, copies);
  }
}

}  // namespace

void AlternateLoops(std::vector<RunStep>& steps) {
  for (RunStep& step : steps) {
    for (std::vector<RunStep>& block : step.blocks) AlternateLoops(block);
    if (step.kind != StepKind::kWhile || step.blocks.size() <= 2 || step.blocks[2].empty())
      continue;
    if (CountOf(step.blocks[0]) + CountOf(step.blocks[1]) > kAlternateMaxSteps) continue;
    const std::vector<RunStep> copies = step.blocks[2];
    std::vector<RunStep> condition = step.blocks[0], body = step.blocks[1];
    Exchange(condition, copies);
    Exchange(body, copies);
    step.blocks.push_back(std::move(condition));
    step.blocks.push_back(std::move(body));
    step.slices.push_back(step.slices[0]);
    Exchange(step.slices[1], copies);
  }
}

}  // namespace tokamak
