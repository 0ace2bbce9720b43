#include "gen/gpu/remove_index_clamps.h"

#include <utility>

#include "gen/gpu/used_values.h"
#include "kernel/range.h"

namespace tokamak::gpu {
namespace {

bool IsZero(const Kernel& kernel, ValueId id) {
  const ScalarNode& node = kernel.node(id);
  return node.prim == Prim::kConst && node.type == ScalarType::kIndex && node.bits == 0;
}

bool LoadsFit(const Kernel& kernel) {
  UsedValues used(kernel);
  RangeTable ranges;
  for (size_t i = 0; i < kernel.nodes.size(); ++i) {
    const ScalarNode& node = kernel.nodes[i];
    if (!used[i] || node.prim != Prim::kLoad) continue;
    Range range = ranges.Of(kernel, node.operands[0]);
    if (range.low < 0 || range.high >= kernel.array(node.array()).size) return false;
  }
  return true;
}

}  // namespace

std::optional<Kernel> RemoveIndexClamps(const Kernel& kernel) {
  Kernel made = kernel;
  // max(x, 0) becomes x + 0, and so does min(max(x, 0), last).
  std::vector<ValueId> zero(made.nodes.size(), kNoValue);
  bool any = false;
  for (size_t i = 0; i < made.nodes.size(); ++i) {
    ScalarNode& node = made.nodes[i];
    if (node.type != ScalarType::kIndex || (node.prim != Prim::kMax && node.prim != Prim::kMin))
      continue;
    auto [x, y, unused] = node.operands;
    if (node.prim == Prim::kMax && IsZero(kernel, x)) std::swap(x, y);
    if (node.prim == Prim::kMin && kernel.IsConstant(x)) std::swap(x, y);
    if (node.prim == Prim::kMax && IsZero(kernel, y)) zero[i] = y;
    if (node.prim == Prim::kMin && kernel.IsConstant(y)) zero[i] = zero[static_cast<size_t>(x)];
    if (zero[i] == kNoValue) continue;
    any = true;
    node.prim = Prim::kAdd;
    node.operands[0] = x;
    node.operands[1] = zero[i];
  }
  if (!any || !LoadsFit(made)) return std::nullopt;
  return made;
}

}  // namespace tokamak::gpu
