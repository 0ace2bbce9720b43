#pragma once

#include <cstdint>
#include <span>

#include "interp/value.h"

namespace tokamak {

// Slices and concatenations along one dimension, as the collectives need them.

Value Zeros(const Shape& shape);  // arrays, tuples and tokens
// Elements start .. start+size-1 along a dimension; they must be in bounds.
Value SliceOf(const Value& value, size_t dimension, int64_t start, int64_t size);
// Requires at least one value; shapes must agree except in the given dimension.
Value Concat(std::span<const Value> values, size_t dimension);

}  // namespace tokamak
