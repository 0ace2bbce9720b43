#pragma once

#include <cstddef>
#include <vector>

#include "interp/value.h"
#include "ir/ir.h"
#include "support/result.h"

namespace tokamak {

// Conversion between raw buffers and interpreter values. A buffer is dense and row-major. An
// element narrower than 8 bits occupies one byte; signed elements are sign-extended.

// Returns TK5002 if memory for the value cannot be allocated.
Result<Value> ValueFromBytes(const Shape& shape, const void* data);
// Requires that `data` has room for every element.
void StoreBytes(const Value& value, void* data);
Result<std::vector<std::byte>> BytesOfConstant(const Instr& constant);

}  // namespace tokamak
