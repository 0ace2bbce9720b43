#pragma once

#include "fusion/expand_ops.h"
#include "ir/ir.h"

namespace tokamak {

// Sorts of unsigned integers by some of their bits, on GPUs.

// The elements of a line in the order of their bits from `from` on, below `to`; what is equal there
// keeps its order. Bits from `to` on are 0.
Instr* SortedByBits(Expansion& make, Instr* words, int from, int to);

}  // namespace tokamak
