#pragma once

#include <optional>
#include <vector>

#include "gen/element.h"

// Analysis of sort instructions, and code for their comparators.

namespace tokamak {

// A sort of lines with any comparator.
struct LineSort {
  const Instr* instr = nullptr;
  size_t along = 0;
  Dims dims;
  int64_t length = 1, lines = 1;

  // Whether the comparator uses an operand's elements.
  bool IsCompared(size_t operand) const;
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

// A sort of words by a digit, i.e. some of their bits: the comparator is less-than on the digit. It
// may capture one value that the comparator ignores.
struct RadixKey {
  const Instr* digit = nullptr;  // the digit of the first element, in the comparator
  int bits = 0;
};
std::optional<RadixKey> RadixKeyOf(const Instr& sort);
// The digit of an element, less than 2^bits.
std::optional<Scalar> DigitOf(KernelBuilder& b, const Instr& sort, const RadixKey& digits,
                              const Element& element);

// Returns why sorts with this comparator have no kernel at any length, nullopt if they have one.
std::optional<std::string> WhyNoComparison(const Instr& sort);

}  // namespace tokamak
