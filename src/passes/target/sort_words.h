#pragma once

#include "cost/machine.h"
#include "ir/ir.h"
#include "rewrite/editor.h"

// Sorts of unsigned integers by some of their bits, on GPUs.

namespace tokamak {

// The order of words: by the key that their bits from `from` on are.
struct WordOrder {
  int from = 0, bits = 32;
  bool is_descending = false;
  // The keys are reals whose bits were put in their total order, and both zeros are equal.
  bool equal_zeros = false;
};

// How many digits a key has.
int DigitsOf(const WordOrder& order);

// Whether one kernel sorts lines of that many words: by all of their bits, four at a time.
bool IsSortedAsOne(ElementType word, int64_t length);

// Whether that is sooner done than by comparing, of lines that a team holds either way.
bool IsSortedSooner(const WordOrder& order, int64_t length);

// Whether longer lines are sorted digit by digit; shorter ones are merged in fewer kernels.
bool IsSortedByDigits(int64_t length, const Machine& machine);

// The elements of lines, [lines, length] of u32 or u64, in order; what is equal keeps its order.
//
// Lines that a team does not hold are sorted digit by digit, from the lowest. For each digit, those
// of stretches of the line are counted; counts are summed up over all stretches for each digit; and
// the line is sorted by the digit with what is known so, stretch by stretch (gpu::IsPlacedSort).
// Each step is a plain sort, scan or scatter.
Instr* SortedWords(Editor& make, Instr* words, const WordOrder& order, const Machine& machine);

}  // namespace tokamak
