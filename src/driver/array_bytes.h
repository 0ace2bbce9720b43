#pragma once

#include <cstddef>

#include "interp/value.h"
#include "ir/shape.h"
#include "support/result.h"

namespace tokamak {

// Between arrays as buffers hold them and values of the interpreter. A buffer is dense and
// row-major; an element of fewer than 8 bits takes a byte, signed ones sign-extended.

// TK5002 when there is no memory for the value.
Result<Value> ValueFromBytes(const Shape& shape, const void* data);
// `data` has room for every element.
void StoreBytes(const Value& value, void* data);

}  // namespace tokamak
