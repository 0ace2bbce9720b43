#pragma once

#include <optional>
#include <vector>

#include "fusion/sorts.h"

namespace tokamak {

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
