#pragma once

#include "ir/ir.h"
#include "rewrite/pass.h"

namespace tokamak {

// Sorts on GPUs: a line that is too long for team memory is cut into a power of two of stretches,
// which are sorted, then pairs of them and so on: sorts of lines whose halves are in order. Where
// the cut is not even, the line is made longer first, and sorted by what is its own before all
// else. No: it is not too long.
bool TryMergeSort(Instr& sort, PassContext& context);
// A top-k becomes a sort of which the first elements are taken; of a long line, of those that are
// the first of their stretches.
bool TrySortTopK(Instr& top, PassContext& context);

}  // namespace tokamak
