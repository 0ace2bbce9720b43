// Final buffer assignment: results, slices of all steps, aliasing of kernel arguments.

#include <algorithm>
#include <unordered_set>

#include "lower/lowerer.h"

namespace tokamak {

void Lowerer::AssignResults(const Leaves& roots, const std::vector<Shape>& shapes,
                            const std::vector<MemoryValue>& parameters) {
  // A root that is a parameter whose memory is donated to another result is first copied to the
  // arena.
  Leaves donors(roots.size(), kNoMemory);
  std::unordered_set<MemoryValue> donated, of_parameters(parameters.begin(), parameters.end());
  for (size_t p = std::min(parameters.size(), options_.alias_results.size()); p-- > 0;) {
    auto result = static_cast<size_t>(options_.alias_results[p]);
    if (options_.alias_results[p] >= 0 && result < donors.size()) donors[result] = parameters[p];
  }
  for (MemoryValue donor : donors) donated.insert(donor);
  Leaves from = roots;
  memory_.Tick();
  for (size_t i = 0; i < roots.size(); ++i) {
    bool is_parameter = of_parameters.contains(roots[i]);
    if (!is_parameter || roots[i] == kNoMemory || donors[i] == roots[i]) continue;
    if (!donated.contains(roots[i])) continue;
    from[i] = memory_.New(memory_.bytes(roots[i]));
    Copy(program_.steps, from[i], roots[i]);
  }
  Leaves assigned;
  for (size_t i = 0; i < roots.size(); ++i) {
    if (!shapes[i].IsArray()) continue;
    auto memory = static_cast<int32_t>(first_result_ + static_cast<int32_t>(i));
    if (from[i] == roots[i] && memory_.AssignToResult(from[i], memory, donors[i])) continue;
    memory_.Tick();
    memory_.Use(from[i]);
    if (memory_.bytes(from[i]) == 0) continue;
    program_.steps.push_back({.kind = StepKind::kCopy,
                              .slices = {{memory, 0}, Unassigned(from[i])},
                              .bytes = memory_.bytes(from[i]),
                              .at = memory_.now()});
  }
}

void Lowerer::Settle(std::vector<RunStep>& steps) {
  for (RunStep& step : steps) {
    for (BufferSlice& slice : step.slices)
      if (slice.memory < 0) slice = memory_.SliceOf(static_cast<MemoryValue>(slice.offset));
    for (std::vector<RunStep>& block : step.blocks) Settle(block);
    if (step.kind == StepKind::kLaunch) MarkAliases(step);
  }
  std::erase_if(steps, [](const RunStep& step) {
    return step.kind == StepKind::kCopy && step.slices[0] == step.slices[1];
  });
  program_.copies += std::count_if(
      steps.begin(), steps.end(), [](const RunStep& step) { return step.kind == StepKind::kCopy; });
}

void Lowerer::MarkAliases(const RunStep& step) {
  Kernel& kernel = program_.kernels[step.target];
  for (size_t i = 0; i < step.slices.size(); ++i) {
    for (size_t k = 0; k < i; ++k) {
      if (!MayOverlap(step.slices[i], step.slices[k])) continue;
      kernel.arrays[i].distinct = kernel.arrays[k].distinct = false;
    }
  }
}

bool Lowerer::MayOverlap(const BufferSlice& x, const BufferSlice& y) const {
  if (x == y) return true;
  for (auto [parameter, result] : {std::pair(x, y), std::pair(y, x)}) {
    int64_t p = parameter.memory - 1, r = result.memory - first_result_;
    if (p >= 0 && p < static_cast<int64_t>(options_.alias_results.size()) && r >= 0 &&
        options_.alias_results[static_cast<size_t>(p)] == r)
      return true;
  }
  return false;
}

}  // namespace tokamak
