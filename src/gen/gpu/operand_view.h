#pragma once

#include <optional>
#include <vector>

#include "gen/region.h"

// Where the elements of a dot's operand are in memory, if the operand follows from an array by ops
// that only rename indices.

namespace tokamak::gpu {

// Element c of the operand is element start + sum(strides[d] * c[d]) of the array. The stride of a
// dimension of size 1 is arbitrary.
struct OperandView {
  const Instr* array = nullptr;  // null: not in memory in this form
  Dims strides;
  int64_t start = 0;
};

// Whether the result is a view of the operand: a reshape, a transpose, or a slice with stride 1.
bool IsView(const Instr& instr);
// The operand as a view of an input of the region.
OperandView OperandViewOf(const FusedRegion& region, const Instr& operand);
// The operand as a view of the first instruction that is no view (IsView).
OperandView OperandViewOf(const Instr& operand);

// A value that repeats the elements of another one: broadcast(x), or reshape(broadcast(x)) that
// repeats each index of one dimension, as those of heads that several heads of queries share.
struct RepeatedValue {
  const Instr* from = nullptr;
  // For each dimension: how many adjacent indices have the same elements, and the dimension of
  // `from`, -1 if it has none.
  Dims times, from_dims;
  std::vector<const Instr*> ops;  // that repeat, users before operands
};
std::optional<RepeatedValue> RepeatedValueOf(const Instr& value);

}  // namespace tokamak::gpu
