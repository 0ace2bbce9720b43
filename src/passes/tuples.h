#pragma once

#include <algorithm>

#include "ir/shape.h"

namespace tokamak {

// A tuple that holds tuples.
inline bool IsNested(const Shape& shape) {
  return shape.IsTuple() &&
         std::ranges::any_of(shape.elements(), [](const Shape& e) { return e.IsTuple(); });
}

}  // namespace tokamak
