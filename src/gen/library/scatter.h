#pragma once

#include "ir/ir.h"

namespace tokamak {

// What the runtime's scatter does with two elements; nothing where it does not.
enum class PlacedOp : uint8_t { kSet, kAdd, kMultiply, kMinimum, kMaximum };
std::optional<PlacedOp> PlacedOpOf(const Instr& scatter);

// Whether a scatter is of many single elements of a line, at places that are one array of s32: the
// runtime has a function for that (runtime/scatter.h).
bool IsPlacedScatter(const Instr& scatter);
// Whether it would be, if its indices were such an array (linearize-scatters).
bool MayBePlacedScatter(const Instr& scatter);

}  // namespace tokamak
