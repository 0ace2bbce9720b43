#pragma once

#include <optional>
#include <vector>

#include "gen/element.h"

// Analysis of sort instructions, and code for their comparators. A line is a 1-d slice of the
// operands along the sort's dimension: what is sorted. The operands are sorted together, by one
// comparator.

namespace tokamak {

// A sort of lines with any comparator.
struct LineSort {
  const Instr* instr = nullptr;
  size_t along = 0;               // the dimension that is sorted
  Dims dims;                      // of the operands
  int64_t length = 1, lines = 1;  // elements of a line; number of lines

  // Whether the comparator uses an operand's elements.
  bool ComparatorUses(size_t operand) const;
};

LineSort LineSortOf(const Instr& sort);
// Whether both halves of every line are already sorted: all operands come from sorts of the halves
// with the same comparator.
bool HasSortedHalves(const Instr& sort);
// Whether the results of a sort are such halves: then it must not be replaced.
bool IsMergedLater(const Instr& sort);
Coordinates CoordinatesInLine(KernelBuilder& b, const LineSort& sort, Scalar line, Scalar position);
// Whether the first of two elements comes before the second. `elements`: for each operand the
// element of the first, then that of the second. Returns nullopt if the comparator has no scalar
// formula.
std::optional<Scalar> ComesBefore(KernelBuilder& b, const LineSort& sort,
                                  const std::vector<Element>& elements);

// A sort of u32 or u64 words by a digit, i.e. some of their bits: the comparator is less-than on
// the digit. The compiler pass that splits a radix sort makes such instructions
// (passes/target/radix_sort.h).
//
// Lines that are too long for a thread block are radix-sorted digit by digit, each digit in three
// kernels: a histogram of the digit per segment of the line (gpu/histogram.cc), a scan of the
// counts, and the radix scatter, which moves each word to its place. The radix scatter is encoded
// as a sort by the digit with one more operand, s32[lines, digits, segments]: the position in the
// sorted line of the first word of each digit of each segment. It is a captured operand
// (Instr::captures), which is passed whole to the comparator, not element by element. The
// comparator does not use it.
struct RadixKey {
  const Instr* digit = nullptr;  // the instruction in the comparator: its first parameter's digit
  int bits = 0;                  // of the digit
};
std::optional<RadixKey> RadixKeyOf(const Instr& sort);
// The digit of an element, less than 2^bits.
std::optional<Scalar> DigitOf(KernelBuilder& b, const Instr& sort, const RadixKey& key,
                              const Element& element);

// Returns why the comparator has no code for the elements of the operands, nullopt if it has.
// Sorts that compare elements need that code, whatever the length of their lines; radix sorts do
// not.
std::optional<std::string> WhyNoComparatorCode(const Instr& sort);

}  // namespace tokamak
