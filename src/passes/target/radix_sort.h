#pragma once

#include "cost/machine.h"
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

// The number of digits of a key.
int DigitsOf(const RadixOrder& order);

// Whether one kernel can sort lines of that many words, by all of their bits, four per pass.
bool IsSortedAsOne(ElementType word, int64_t length);

// Whether that is faster than a comparison sort, for lines that fit in a block either way.
bool IsSortedSooner(const RadixOrder& order, int64_t length);

// Whether longer lines are sorted digit by digit; shorter ones are merged in fewer kernels.
bool IsRadixSorted(int64_t length, const Machine& machine);

// Sorts lines, [lines, length] of u32 or u64. Stable.
//
// Lines that do not fit in a block are sorted digit by digit, from the lowest (LSD radix sort).
// Each pass builds a histogram of the digit per segment of the line, computes prefix sums of the
// counts over all segments for each digit, and scatters each segment to the resulting offsets
// (gpu::IsRadixScatter). Each step is a plain sort, scan or scatter.
Instr* RadixSort(Editor& make, Instr* words, const RadixOrder& order, const Machine& machine);

}  // namespace tokamak
