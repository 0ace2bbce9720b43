#pragma once

#include <algorithm>

#include "ir/shape.h"

namespace tokamak {

// Whether the shape is a tuple that contains tuples. Shared by the passes that flatten tuples.
inline bool IsNested(const Shape& shape) {
  return shape.IsTuple() &&
         std::ranges::any_of(shape.elements(), [](const Shape& e) { return e.IsTuple(); });
}

}  // namespace tokamak
