#include "cost/thread_strides.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace tokamak {

ThreadStrides ThreadStridesOf(const Kernel& kernel, const LinearIndex& index,
                              const std::vector<ArrayAccess::Around>& loops,
                              const Divergence& divergence) {
  auto factor_of = [&](LoopId loop) {
    double factor = 0;
    for (const auto& [value, times] : index.terms) {
      const ScalarNode& node = kernel.node(value);
      if (node.prim == Prim::kLoop && node.loop() == loop) factor += static_cast<double>(times);
    }
    return std::abs(factor);
  };
  for (const auto& [value, times] : index.terms)
    if (kernel.node(value).prim != Prim::kLoop &&
        (divergence.ByThread(value) || divergence.ByLane(value)))
      return {};
  ThreadStrides strides;
  std::vector<std::pair<double, double>> steps;  // stride and trip count of each loop
  for (const ArrayAccess::Around& around : loops) {
    LoopRole role = kernel.loop(around.loop).role;
    if (role == LoopRole::kGrid) continue;
    double factor = factor_of(around.loop);
    if (role == LoopRole::kThread) strides.step = factor;
    if (factor > 0) steps.emplace_back(factor, around.trips);
  }
  std::sort(steps.begin(), steps.end());
  strides.run = 1;
  for (auto [factor, trips] : steps) {
    if (factor > strides.run) break;
    strides.run += factor * (trips - 1);
  }
  return strides;
}

}  // namespace tokamak
