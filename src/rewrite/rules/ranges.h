#pragma once

// Between which numbers the elements of an integer array lie, as far as a short look tells.

#include "rewrite/rules/conditions.h"

namespace tokamak {

// A range that holds every element: that of its type at worst. Nothing for what is no array of
// integers or pred, and for u64 of which nothing is known. Looks at a bounded number of
// instructions.
std::optional<IntRange> RangeOf(const Instr* instr);

}  // namespace tokamak
