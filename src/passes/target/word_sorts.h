#pragma once

#include "cost/machine.h"
#include "ir/ir.h"
#include "rewrite/pass.h"

namespace tokamak {

// Sorts on GPUs: long lines that are sorted by one key, up or down, become sorts of words
// (sort_words.h), the key above and below it what goes with it: the one other operand, or the
// number of the element, by which the other operands are fetched. No: it is no such sort, or
// merging takes less time.
bool TryWordSort(Instr& sort, PassContext& context);

}  // namespace tokamak
