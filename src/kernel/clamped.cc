#include "kernel/clamped.h"

namespace tokamak {
namespace {

// Strips one min or max with a constant. False if there is none.
bool StripBound(const Kernel& kernel, ClampedIndex& index) {
  const ScalarNode& node = kernel.node(index.inner);
  if (node.prim != Prim::kMin && node.prim != Prim::kMax) return false;
  size_t end = kernel.IsConstant(node.operands[0]) ? 0 : 1;
  std::optional<int64_t>& of = node.prim == Prim::kMin ? index.high : index.low;
  if (!kernel.IsConstant(node.operands[end]) || of) return false;
  const ScalarNode& constant = kernel.node(node.operands[end]);
  of = IntOfBits(constant.type, constant.bits);
  index.inner = node.operands[1 - end];
  return true;
}

}  // namespace

std::optional<ClampedIndex> ClampedOf(const Kernel& kernel, LinearIndex base, ValueId value) {
  ClampedIndex clamped;
  clamped.base = std::move(base);
  clamped.inner = value;
  if (!StripBound(kernel, clamped)) return std::nullopt;
  StripBound(kernel, clamped);
  // Otherwise the nesting order of min and max would matter.
  if (clamped.low && clamped.high && *clamped.low > *clamped.high) return std::nullopt;
  return clamped;
}

}  // namespace tokamak
