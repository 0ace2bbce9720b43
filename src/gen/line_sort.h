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
  size_t along = 0;
  Dims dims;
  int64_t length = 1, lines = 1;

  // Whether the comparator uses an operand's elements.
  bool ComparatorUses(size_t operand) const;
};

LineSort LineSortOf(const Instr& sort);
// Whether both halves of every line are already sorted: all operands come from sorts of the halves
// with the same comparator.
bool HasSortedHalves(const Instr& sort);
Coordinates CoordinatesInLine(KernelBuilder& b, const LineSort& sort, Scalar line, Scalar position);
// Whether the first of two elements comes before the second. `elements`: for each operand the
// element of the first, then that of the second. Returns nullopt if the comparator has no scalar
// formula.
std::optional<Scalar> ComesBefore(KernelBuilder& b, const LineSort& sort,
                                  const std::vector<Element>& elements);

// A sort of u32 or u64 words by a digit, i.e. some of their bits: the comparator is less-than on
// the digit. The passes that split a radix sort make such instructions
// (passes/target/radix_sort.h). One of them, the radix scatter pass (gpu/gpu.h), has one more
// operand, which the comparator captures but does not use: the start offsets of the digits, for the
// kernel.
struct RadixKey {
  const Instr* digit = nullptr;  // the instruction in the comparator: its first parameter's digit
  int bits = 0;                  // of the digit
};
std::optional<RadixKey> RadixKeyOf(const Instr& sort);
// The digit of an element, less than 2^bits.
std::optional<Scalar> DigitOf(KernelBuilder& b, const Instr& sort, const RadixKey& key,
                              const Element& element);

// Returns why sorts with this comparator have no kernel at any length, nullopt if they have one.
std::optional<std::string> WhyNoComparatorCode(const Instr& sort);

}  // namespace tokamak
