#include "lower/alternate.h"

#include <cstddef>

namespace tokamak {
namespace {

constexpr size_t kAlternateMaxSteps = 4096;

size_t CountOf(const std::vector<RunStep>& steps) {
  size_t count = steps.size();
  for (const RunStep& step : steps)
    for (const std::vector<RunStep>& block : step.blocks) count += CountOf(block);
  return count;
}

// Values of the copies live through the whole loop: nothing else in it has these places.
void Exchange(Place& place, const std::vector<RunStep>& copies) {
  for (const RunStep& copy : copies) {
    if (place == copy.places[0]) {
      place = copy.places[1];
      return;
    }
    if (place == copy.places[1]) {
      place = copy.places[0];
      return;
    }
  }
}

void Exchange(std::vector<RunStep>& steps, const std::vector<RunStep>& copies) {
  for (RunStep& step : steps) {
    for (Place& place : step.places) Exchange(place, copies);
    for (std::vector<RunStep>& block : step.blocks) Exchange(block, copies);
  }
}

}  // namespace

void AlternateLoops(std::vector<RunStep>& steps) {
  for (RunStep& step : steps) {
    for (std::vector<RunStep>& block : step.blocks) AlternateLoops(block);
    if (step.kind != StepKind::kWhile || step.blocks.size() != 3 || step.blocks[2].empty())
      continue;
    if (CountOf(step.blocks[0]) + CountOf(step.blocks[1]) > kAlternateMaxSteps) continue;
    const std::vector<RunStep> copies = step.blocks[2];
    std::vector<RunStep> condition = step.blocks[0], body = step.blocks[1];
    Exchange(condition, copies);
    Exchange(body, copies);
    step.blocks.push_back(std::move(condition));
    step.blocks.push_back(std::move(body));
    step.places.push_back(step.places[0]);
    Exchange(step.places[1], copies);
  }
}

}  // namespace tokamak
