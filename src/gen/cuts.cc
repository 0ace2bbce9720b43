#include "gen/cuts.h"

#include <algorithm>
#include <optional>
#include <set>

#include "kernel/linear.h"

namespace tokamak {
namespace {

// factor * ((i + add) / by) + constant.
struct Step {
  int64_t factor = 1, add = 0, by = 1, constant = 0;
  int64_t At(int64_t i) const { return factor * ((i + add) / by) + constant; }
};

// Values of indices and factors of them. Chosen: small enough that sums of several products cannot
// overflow 64 bits.
constexpr int64_t kSmallIndex = int64_t{1} << 40, kSmallFactor = 1 << 20;

bool IsSmall(int64_t x) {
  return x > -kSmallIndex && x < kSmallIndex;
}

std::optional<Step> StepOf(const Kernel& kernel, const LinearIndex& sum, ValueId variable) {
  if (sum.terms.size() != 1 || !IsSmall(sum.constant)) return std::nullopt;
  auto [value, factor] = sum.terms[0];
  if (factor > kSmallFactor || factor < -kSmallFactor) return std::nullopt;
  Step step{.factor = factor, .constant = sum.constant};
  if (value == variable) return step;
  const ScalarNode& node = kernel.node(value);
  if (node.prim != Prim::kDiv) return std::nullopt;
  std::optional<LinearIndex> over = LinearOf(kernel, node.operands[0]);
  const ScalarNode& divisor = kernel.node(node.operands[1]);
  if (!over || divisor.prim != Prim::kConst || over->terms.size() != 1) return std::nullopt;
  if (over->terms[0] != std::pair(variable, int64_t{1}) || over->constant < 0) return std::nullopt;
  step.add = over->constant;
  step.by = IntOfBits(divisor.type, divisor.bits);
  if (step.by <= 0 || !IsSmall(step.add)) return std::nullopt;
  return step;
}

}  // namespace

std::vector<int64_t> CutsOf(const Kernel& kernel, ValueId variable, int64_t extent) {
  std::set<int64_t> cuts;
  if (!IsSmall(extent)) return {};
  for (const ScalarNode& node : kernel.nodes) {
    if (node.prim != Prim::kLt && node.prim != Prim::kLe) continue;
    if (kernel.node(node.operands[0]).type != ScalarType::kIndex) continue;
    std::optional<LinearIndex> x = LinearOf(kernel, node.operands[0]);
    std::optional<LinearIndex> y = LinearOf(kernel, node.operands[1]);
    if (y) y = Times(*y, -1);
    std::optional<LinearIndex> sum = x && y ? Sum(*x, *y) : std::nullopt;
    std::optional<Step> step = sum ? StepOf(kernel, *sum, variable) : std::nullopt;
    if (!step) continue;
    auto holds = [&](int64_t i) {
      return node.prim == Prim::kLt ? step->At(i) < 0 : step->At(i) <= 0;
    };
    bool first = holds(0);
    // Invariant: at `low` the result is that of the range's start; at `high` it may differ.
    int64_t low = 0, high = extent - 1;
    if (holds(high) == first) continue;
    while (high - low > 1) {
      int64_t middle = low + (high - low) / 2;
      (holds(middle) == first ? low : high) = middle;
    }
    cuts.insert(high);
  }
  return {cuts.begin(), cuts.end()};
}

std::vector<int64_t> AlignedCuts(const std::vector<int64_t>& cuts, int64_t unit, int64_t extent) {
  std::set<int64_t> aligned;
  for (int64_t cut : cuts) {
    int64_t below = cut / unit * unit;
    for (int64_t at : {below, below < cut ? below + unit : below})
      if (at > 0 && at < extent) aligned.insert(at);
  }
  return {aligned.begin(), aligned.end()};
}

}  // namespace tokamak
