#pragma once

#include "ir/ir.h"
#include "rewrite/pass.h"

namespace tokamak {

// Merge sorts for GPUs. A line that is too long for shared memory is split into a power of two of
// segments, which are sorted; then pairs of segments are merged, and so on: each step is a sort of
// lines whose halves are sorted. If the split is uneven, the line is padded first, and the padding
// sorts last. Returns false if the line is not too long.
bool TryMergeSort(Instr& sort, PassContext& context);
// A top-k becomes a sort and a slice of the first elements. In a long line, segments are first
// reduced to their own first elements.
bool TrySortTopK(Instr& top, PassContext& context);

}  // namespace tokamak
