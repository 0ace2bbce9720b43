// An SM executes integer additions, shifts, logic and comparisons in one pipe, and integer
// multiply-adds in another one of the same rate. Kernels that draw random bits consist of the
// former, so x + y is written as x * 1 + y, where 1 is a constant that the compiler cannot see.
//
// Measured on an H200, cycles of an SM per 64 threefry: 53 as the compiler balances them, 46 with
// all sums as multiply-adds, which is what the other pipe needs for the 41 rotations and exclusive
// ors. Rotations as 64-bit products (low | high) take longer, all of them or two of 20: these
// products have half the rate.

#include "backend/cuda/pipe_balance.h"

#include <algorithm>
#include <vector>

namespace tokamak::cuda {
namespace {

// Integer additions of a kernel from which multiply-adds pay off. Chosen; no measurement on record.
constexpr int kManySums = 16;
// Operations of the multiplying pipe: an f32 operation takes half of its time, because f32 has a
// second pipe (measured on an H200: 128 results a clock, and 64 of integers); a product takes that
// of two sums.
constexpr double kRealOps = 0.5, kProductOps = 2;

bool IsWord(ScalarType type) {
  return type == ScalarType::kU32 || type == ScalarType::kS32;
}

// Whether a value is x << k | x >> (32 - k): a rotation, which is one instruction.
bool IsRotation(const Kernel& kernel, const ScalarNode& node) {
  if (node.prim != Prim::kOr) return false;
  const ScalarNode &x = kernel.node(node.operands[0]), &y = kernel.node(node.operands[1]);
  return ((x.prim == Prim::kShl && y.prim == Prim::kShr) ||
          (x.prim == Prim::kShr && y.prim == Prim::kShl)) &&
         x.operands[0] == y.operands[0];
}

}  // namespace

std::set<ValueId> MultipliedSums(const Kernel& kernel) {
  std::vector<ValueId> sums;
  double logic = 0, products = 0;
  for (size_t i = 0; i < kernel.nodes.size(); ++i) {
    const ScalarNode& node = kernel.nodes[i];
    if (node.arity() < 2 || IsOrdered(node.prim)) continue;
    ScalarType type = kernel.node(node.operands[0]).type;
    if (IsFloat(type)) {
      products += kRealOps;
    } else if (IsRotation(kernel, node)) {
      --logic;  // three instructions were counted, one remains
    } else if (node.prim == Prim::kMul || node.prim == Prim::kMulHigh) {
      products += type == ScalarType::kIndex ? 0 : kProductOps;
    } else if (node.prim == Prim::kAdd && node.type == ScalarType::kU32) {
      sums.push_back(ValueId{static_cast<uint32_t>(i)});
    } else if (IsWord(type)) {
      ++logic;
    }
  }
  auto count = static_cast<double>(sums.size());
  if (count < kManySums || logic <= products) return {};
  // Evenly distributed, so that both pipes are as busy at all times.
  double share = std::min(1.0, (logic + count - products) / (2 * count));
  std::set<ValueId> multiplied;
  for (size_t i = 0; i < sums.size(); ++i) {
    auto number = static_cast<double>(i);
    if (static_cast<int>((number + 1) * share) > static_cast<int>(number * share))
      multiplied.insert(sums[i]);
  }
  return multiplied;
}

}  // namespace tokamak::cuda
