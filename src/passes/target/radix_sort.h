#pragma once

#include "cost/machine.h"
#include "gen/sort_schedule.h"
#include "ir/ir.h"
#include "rewrite/editor.h"

// Radix sorts of unsigned integers by some of their bits, for GPUs.

namespace tokamak {

// The order of words: by the key in their bits from `from` on.
struct RadixOrder {
  int from = 0, bits = 32;
  bool is_descending = false;
  // The keys are floats whose bits were mapped to their total order, and both zeros are equal.
  bool equal_zeros = false;
};

// Sorts lines, [lines, length] of u32 or u64, with a schedule of WordSortSchedules. Stable.
//
//   kRadix, whole lines   one sort instruction, of which a block sorts a line
//   kRadix, segments      LSD radix sort, digit by digit, from the lowest. Each pass builds a
//                         histogram of the digit per segment of the line, computes prefix sums of
//                         the counts over all segments for each digit, and scatters each segment to
//                         the resulting offsets (the radix scatter, gen/line_sort.h). Each step is
//                         a plain sort, scan or scatter
//   kMerge, kNetwork      one sort instruction that compares the keys
Instr* RadixSort(Editor& make, Instr* words, const RadixOrder& order, const SortSchedule& schedule);
// With the cheapest schedule.
Instr* RadixSort(Editor& make, Instr* words, const RadixOrder& order, const Machine& machine);

}  // namespace tokamak
