#include "kernel/narrow_arithmetic.h"

#include <algorithm>
#include <initializer_list>
#include <utility>

namespace tokamak {
namespace {

// Exact operations that are looked through: longer chains are rare, and the search is exponential
// in it for selects and extremes.
constexpr int kMostExactSteps = 4;

constexpr Bits kLowHalf = 0xffff;  // the bits of an f32 that a bf16 does not have

bool IsSixteenBitFloat(ScalarType type) {
  return type == ScalarType::kF16 || type == ScalarType::kBF16;
}

// Whether the low 16 bits of a u32 are known to be zero.
bool HasOnlyHighHalf(const Kernel& kernel, ValueId id) {
  const ScalarNode& node = kernel.node(id);
  if (node.prim != Prim::kShl && node.prim != Prim::kAnd) return false;
  const ScalarNode& by = kernel.node(node.operands[1]);
  if (by.prim != Prim::kConst) return false;
  return node.prim == Prim::kShl ? by.bits >= 16 : (by.bits & kLowHalf) == 0;
}

bool IsRepresentable(const Kernel& kernel, ValueId id, ScalarType type, const NarrowArrays* arrays,
                     int steps) {
  const ScalarNode& node = kernel.node(id);
  if (node.type != ScalarType::kF32) return false;
  auto is = [&](size_t i) {
    return steps > 0 && IsRepresentable(kernel, node.operands[i], type, arrays, steps - 1);
  };
  switch (node.prim) {
    case Prim::kConst: {
      Bits narrow = BitsOfDouble(type, DoubleOfBits(node.type, node.bits));
      return BitsOfDouble(node.type, DoubleOfBits(type, narrow)) == node.bits;
    }
    case Prim::kConvert:
      return kernel.node(node.operands[0]).type == type;
    case Prim::kBitcast:
      return type == ScalarType::kBF16 && HasOnlyHighHalf(kernel, node.operands[0]);
    case Prim::kRead:
      return arrays != nullptr && arrays->Has(node.array(), type);
    case Prim::kAbs:
    case Prim::kNeg:
    case Prim::kCopySign:
    case Prim::kShuffle:
      return is(0);
    case Prim::kMin:
    case Prim::kMax:
    case Prim::kMinimum:
    case Prim::kMaximum:
      return is(0) && is(1);
    case Prim::kSelect:
      return is(1) && is(2);
    default:
      return false;
  }
}

// The f32 operation that `id` rounds, if its two operands are representable.
std::optional<ValueId> RoundedOperation(const Kernel& kernel, ValueId id,
                                        std::initializer_list<Prim> prims,
                                        const NarrowArrays* arrays) {
  const ScalarNode& node = kernel.node(id);
  if (node.prim != Prim::kConvert || !IsSixteenBitFloat(node.type)) return std::nullopt;
  const ScalarNode& of = kernel.node(node.operands[0]);
  if (of.type != ScalarType::kF32 || std::ranges::find(prims, of.prim) == prims.end())
    return std::nullopt;
  for (size_t i = 0; i < 2; ++i)
    if (!IsRepresentable(kernel, of.operands[i], node.type, arrays)) return std::nullopt;
  return node.operands[0];
}

}  // namespace

NarrowArrays::NarrowArrays(const Kernel& kernel) {
  for (const Array& array : kernel.arrays)
    are_bf16_.push_back(array.space == Space::kRegisters && array.type == ScalarType::kF32);
  are_f16_ = are_bf16_;
  while (RemoveWideStores(kernel, kernel.body)) {
  }
}

bool NarrowArrays::RemoveWideStores(const Kernel& kernel, const StmtList& block) {
  bool has_removed = false;
  auto remove = [&](std::vector<bool>& are, size_t array) {
    has_removed = has_removed || are[array];
    are[array] = false;
  };
  for (const Stmt& stmt : block) {
    for (size_t i = 0; stmt.kind == StmtKind::kAsync && i < are_bf16_.size(); ++i) {
      remove(are_f16_, i);
      remove(are_bf16_, i);
    }
    bool stores = stmt.kind == StmtKind::kStore, multiplies = stmt.kind == StmtKind::kMatMul;
    for (auto [type, are] :
         {std::pair(ScalarType::kF16, &are_f16_), {ScalarType::kBF16, &are_bf16_}})
      if (multiplies || (stores && !IsRepresentable(kernel, stmt.value, type, this)))
        remove(*are, static_cast<size_t>(stmt.array));
    for (const StmtList* inner : {&stmt.condition_stmts, &stmt.body, &stmt.else_body})
      has_removed = RemoveWideStores(kernel, *inner) || has_removed;
  }
  return has_removed;
}

bool IsRepresentable(const Kernel& kernel, ValueId id, ScalarType type,
                     const NarrowArrays* arrays) {
  return IsRepresentable(kernel, id, type, arrays, kMostExactSteps);
}

std::optional<ValueId> NarrowOperation(const Kernel& kernel, ValueId id,
                                       const NarrowArrays* arrays) {
  return RoundedOperation(kernel, id, {Prim::kAdd, Prim::kSub, Prim::kMul}, arrays);
}

std::optional<ValueId> NarrowQuotient(const Kernel& kernel, ValueId id,
                                      const NarrowArrays* arrays) {
  if (kernel.node(id).type != ScalarType::kBF16) return std::nullopt;
  return RoundedOperation(kernel, id, {Prim::kDiv}, arrays);
}

}  // namespace tokamak
