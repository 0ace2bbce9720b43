// An SM executes integer additions, shifts, logic and comparisons in one pipe, and integer
// multiply-adds in another one of the same rate. Kernels that draw random bits consist of the
// former, so x + y is written as x * 1 + y, where 1 is a constant that the compiler cannot see.
//
// Measured on an H200, cycles of an SM per 64 threefry: 53 as the compiler balances them, 46 with
// all sums as multiply-adds, which is what the other pipe needs for the 41 rotations and exclusive
// ors. A rotation is also the halves of a 64-bit product, low | high, by a power of two. Such a
// product takes the time of two, so only some of them pay off: those for which the other pipe has
// time left.

#include "backend/cuda/pipe_balance.h"

#include <algorithm>
#include <utility>
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

// This share of the values, evenly distributed, so that both pipes are as busy at all times.
std::set<ValueId> SomeOf(const std::vector<ValueId>& values, double share) {
  std::set<ValueId> some;
  for (size_t i = 0; i < values.size(); ++i) {
    auto number = static_cast<double>(i);
    if (static_cast<int>((number + 1) * share) > static_cast<int>(number * share))
      some.insert(values[i]);
  }
  return some;
}

}  // namespace

int RotatedBits(const Kernel& kernel, ValueId id) {
  const ScalarNode& node = kernel.node(id);
  if (node.prim != Prim::kOr || node.type != ScalarType::kU32) return 0;
  const ScalarNode *left = &kernel.node(node.operands[0]), *right = &kernel.node(node.operands[1]);
  if (left->prim == Prim::kShr) std::swap(left, right);
  if (left->prim != Prim::kShl || right->prim != Prim::kShr ||
      left->operands[0] != right->operands[0] || !kernel.IsConstant(left->operands[1]) ||
      !kernel.IsConstant(right->operands[1]))
    return 0;
  constexpr Bits kWordBits = 32;
  Bits bits = kernel.node(left->operands[1]).bits;
  bool is_rotation =
      bits > 0 && bits < kWordBits && kernel.node(right->operands[1]).bits == kWordBits - bits;
  return is_rotation ? static_cast<int>(bits) : 0;
}

PipeBalance BalancePipes(const Kernel& kernel) {
  std::vector<ValueId> sums, rotations;
  double logic = 0, products = 0;
  for (size_t i = 0; i < kernel.nodes.size(); ++i) {
    const ScalarNode& node = kernel.nodes[i];
    if (node.arity() < 2 || IsOrdered(node.prim)) continue;
    ValueId id{static_cast<uint32_t>(i)};
    ScalarType type = kernel.node(node.operands[0]).type;
    if (IsFloat(type)) {
      products += kRealOps;
    } else if (RotatedBits(kernel, id) > 0) {
      --logic;  // three instructions were counted, one remains
      rotations.push_back(id);
    } else if (node.prim == Prim::kMul || node.prim == Prim::kMulHigh) {
      products += type == ScalarType::kIndex ? 0 : kProductOps;
    } else if (node.prim == Prim::kAdd && node.type == ScalarType::kU32) {
      sums.push_back(id);
    } else if (IsWord(type)) {
      ++logic;
    }
  }
  auto count = static_cast<double>(sums.size());
  if (count < kManySums || logic <= products) return {};
  double share = std::min(1.0, (logic + count - products) / (2 * count));
  PipeBalance balance{SomeOf(sums, share), {}};
  // Each one that changes takes one operation from the one pipe and adds a product to the other.
  double rest = (logic - products - count) / (1 + kProductOps);
  if (share == 1 && !rotations.empty())
    balance.rotations =
        SomeOf(rotations, std::min(1.0, rest / static_cast<double>(rotations.size())));
  return balance;
}

}  // namespace tokamak::cuda
