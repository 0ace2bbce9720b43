#pragma once

// Value ranges of integer arrays from a bounded, local analysis.

#include "rewrite/rules/conditions.h"

namespace tokamak {

// A range that contains every element; at worst the range of the type. Null if the array is not of
// integers or preds, and for a u64 array without known bounds. Visits a bounded number of
// instructions.
std::optional<IntRange> RangeOf(const Instr* instr);

}  // namespace tokamak
