#pragma once

#include <algorithm>
#include <vector>

#include "ir/ir.h"

namespace tokamak {

inline bool AreAllDefault(const std::vector<Precision>& precision) {
  return std::ranges::all_of(precision, [](Precision one) { return one == Precision::kDefault; });
}

// Whether a dot of f32 may round its factors to TF32 (11 significant bits), or multiply them in
// another way that is at least as precise: at default precision, as XLA does on GPUs, or with an
// algorithm that asks for one product of TF32.
inline bool AllowsTf32(const DotAttrs& attrs) {
  if (attrs.algorithm)
    return attrs.algorithm->lhs_type == "tf32" && attrs.algorithm->rhs_type == "tf32" &&
           attrs.algorithm->primitive_operations == 1;
  return AreAllDefault(attrs.precision);
}

// Whether the sums of a dot of f8 may keep 14 significant bits over at most 128 products, as those
// of Hopper's tensor cores: at default precision, or with an algorithm for f8.
inline bool AllowsFloat8Sums(const DotAttrs& attrs) {
  if (attrs.algorithm)
    return attrs.algorithm->lhs_type.starts_with("f8") &&
           attrs.algorithm->rhs_type.starts_with("f8") &&
           attrs.algorithm->primitive_operations == 1;
  return AreAllDefault(attrs.precision);
}

// Whether tensor cores may multiply the elements of both operands as they are, in 8 bits: integers,
// whose sums are exact modulo 2^32, and the f8 types that they have.
inline bool MultipliesBytes(const Instr& dot) {
  auto are_all = [&](auto&& holds) {
    return std::ranges::all_of(
        dot.operands(), [&](const Instr* operand) { return holds(operand->shape().type()); });
  };
  ElementType result = dot.shape().type();
  if (InfoOf(result).bits > 32) return false;
  if (IsInteger(result))
    return are_all([](ElementType type) { return IsInteger(type) && InfoOf(type).bits <= 8; });
  return IsReal(result) && AllowsFloat8Sums(dot.attrs<DotAttrs>()) && are_all([](ElementType type) {
           return type == ElementType::kF8E4M3FN || type == ElementType::kF8E5M2;
         });
}

}  // namespace tokamak
