#pragma once

#include "cost/machine.h"
#include "ir/ir.h"
#include "rewrite/pass.h"

namespace tokamak {

// Packed-key radix sorts for GPUs. A sort of long lines by one key, ascending or descending,
// becomes a radix sort of words (radix_sort.h) with the key in the upper bits and a payload in the
// lower bits: the only other operand, or the element's index, by which the other operands are
// gathered. Returns false if the sort does not qualify, or if merging is faster.
bool TryPackedKeySort(Instr& sort, PassContext& context);

}  // namespace tokamak
