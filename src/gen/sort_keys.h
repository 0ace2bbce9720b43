#pragma once

#include <optional>
#include <vector>

#include "ir/ir.h"

namespace tokamak {

// How elements are compared (runtime/sort.h says more).
enum class KeyOrder : uint8_t { kUnsigned, kSigned, kTotal, kNumbers, kPlain };

// The order of a type's elements when reals are ordered totally; nothing for complex numbers and
// for types whose bits are in no such order.
std::optional<KeyOrder> TotalOrderOf(ElementType type);
// The bits of a real type's infinity, or of its greatest number when it has none.
uint64_t InfinityBits(ElementType type);

// One comparison of a sort's computation: of the same value of two elements.
struct ComparedKey {
  const Instr* value = nullptr;  // computed from the parameters of the first element
  KeyOrder order{};
  bool is_descending = false;
};

// What a computation of (a, b) compares, the first before the others; nothing when it is no such
// order.
std::optional<std::vector<ComparedKey>> ComparedKeysOf(const Computation& less);

}  // namespace tokamak
