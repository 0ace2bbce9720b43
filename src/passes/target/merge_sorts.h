#pragma once

#include "gen/sort_schedule.h"
#include "ir/ir.h"
#include "rewrite/pass.h"

namespace tokamak {

// Merge sorts for GPUs of lines that are longer than a tile (schedule.tile). A line is split into a
// power of two of segments, which are sorted; then pairs of segments are merged, and so on: each
// step is a sort of lines whose halves are sorted. If the split is uneven, the line is padded
// first, and the padding sorts last.
void MergeSort(Instr& sort, const SortSchedule& schedule, PassContext& context);

}  // namespace tokamak
