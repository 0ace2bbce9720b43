#pragma once

#include "gen/sort_schedule.h"
#include "ir/ir.h"
#include "rewrite/pass.h"

namespace tokamak {

// Packed-key radix sorts for GPUs. A sort by one key, ascending or descending, becomes a radix sort
// of words (radix_sort.h) with the key in the upper bits and a payload in the lower bits
// (PackedKeyOf, gen/sort_keys.h).
void PackedKeySort(Instr& sort, const SortSchedule& schedule, PassContext& context);

}  // namespace tokamak
