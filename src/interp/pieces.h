#pragma once

#include <cstdint>
#include <span>

#include "interp/value.h"

namespace tokamak {

// Arrays cut up and put together along one dimension: what collectives do with data.

Value Zeros(const Shape& shape);  // arrays, tuples and tokens
// Elements start .. start+size-1 along a dimension; they must be there.
Value Piece(const Value& value, size_t dimension, int64_t start, int64_t size);
// At least one; equal but for the size of the dimension.
Value Concat(std::span<const Value> values, size_t dimension);

}  // namespace tokamak
