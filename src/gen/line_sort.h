#pragma once

#include <optional>
#include <vector>

#include "gen/element.h"

namespace tokamak {

// A sort of lines by any comparison.
struct LineSort {
  const Instr* instr = nullptr;
  size_t along = 0;
  Dims dims;
  int64_t length = 1, lines = 1;

  // Whether the comparison looks at an operand's elements.
  bool IsCompared(size_t operand) const;
};

LineSort LineSortOf(const Instr& sort);
// Whether both halves of every line are in order already: sorts of them made all operands, by the
// same comparison.
bool HasSortedHalves(const Instr& sort);
Coordinates PlaceInLine(KernelBuilder& b, const LineSort& sort, Scalar line, Scalar place);
// Whether the first of two comes before the second; `elements`: for each operand one of the first,
// one of the second. Nothing when the comparison has no formula.
std::optional<Scalar> ComesBefore(KernelBuilder& b, const LineSort& sort,
                                  const std::vector<Element>& elements);

// A sort of words by some of their bits: the comparison asks of which of two they are the lesser
// number. It may capture a value that the comparison does not look at.
struct DigitSort {
  const Instr* digit = nullptr;  // these bits of the first element, in the comparison
  int bits = 0;
};
std::optional<DigitSort> DigitSortOf(const Instr& sort);
// The number of an element, below two to the bits.
std::optional<Scalar> DigitOf(KernelBuilder& b, const Instr& sort, const DigitSort& digits,
                              const Element& element);

// Why a sort of any length has no kernel, in words; nothing when it has one.
std::optional<std::string> WhyNoComparison(const Instr& sort);

}  // namespace tokamak
