#include "cost/spread.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "kernel/linear.h"

namespace tokamak {

Spread SpreadOf(const Kernel& kernel, ValueId index, const std::vector<ArrayAccess::Around>& loops,
                const Variance& variance) {
  std::optional<LinearIndex> linear = LinearOf(kernel, index);
  if (!linear) return {};
  auto factor_of = [&](LoopId loop) {
    double factor = 0;
    for (const auto& [value, times] : linear->terms) {
      const ScalarNode& node = kernel.node(value);
      if (node.prim == Prim::kLoop && node.loop() == loop) factor += static_cast<double>(times);
    }
    return std::abs(factor);
  };
  for (const auto& [value, times] : linear->terms)
    if (kernel.node(value).prim != Prim::kLoop &&
        (variance.ByThread(value) || variance.ByLane(value)))
      return {};
  Spread spread;
  std::vector<std::pair<double, double>> steps;  // of a loop, and its rounds
  for (const ArrayAccess::Around& around : loops) {
    LoopRole role = kernel.loop(around.loop).role;
    if (role == LoopRole::kGrid) continue;
    double factor = factor_of(around.loop);
    if (role == LoopRole::kThread) spread.step = factor;
    if (factor > 0) steps.emplace_back(factor, around.trips);
  }
  std::sort(steps.begin(), steps.end());
  spread.run = 1;
  for (auto [factor, trips] : steps) {
    if (factor > spread.run) break;
    spread.run += factor * (trips - 1);
  }
  return spread;
}

}  // namespace tokamak
