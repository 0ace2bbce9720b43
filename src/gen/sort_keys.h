#pragma once

#include <optional>
#include <vector>

#include "ir/ir.h"

// Recognizes comparators of sorts as lexicographic orders of keys.

namespace tokamak {

// How keys are compared; the same orders as SortOrder in runtime/sort.h.
//   kFloatTotal    floats by IEEE total order: -NaN ... -0, 0 ... NaN
//   kFloatNanLast  floats; zeros are equal; NaNs are equal and greater than all others
//   kFloatIeee    floats with IEEE comparisons: zeros are equal, NaNs unordered
enum class KeyOrder : uint8_t { kUnsigned, kSigned, kFloatTotal, kFloatNanLast, kFloatIeee };

// The order of a type's elements if floats are ordered totally; nullopt for complex types and types
// whose bits have no such order.
std::optional<KeyOrder> TotalOrderOf(ElementType type);
// The bits of a float type's infinity, or of its greatest finite number if it has none: bits above
// it are NaNs, for runtime sorts that compare the bits of floats as integers.
uint64_t InfinityBits(ElementType type);

// One comparison in a comparator: the same expression, evaluated for both elements.
struct ComparedKey {
  const Instr* value = nullptr;  // computed from the parameters of the first element
  KeyOrder order{};
  bool is_descending = false;
};

// The keys that a comparator (a, b) compares, most significant first; nullopt if it is not such an
// order.
std::optional<std::vector<ComparedKey>> ComparedKeysOf(const Computation& less);

}  // namespace tokamak
