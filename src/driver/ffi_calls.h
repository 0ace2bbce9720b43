#pragma once

#include <string>

#include "support/result.h"

namespace tokamak {

// Has programs call `handler`, a function for XLA's typed custom calls
// (jax.ffi.register_ffi_target), under the name `target`. Only the execute stage is called; it is
// given arrays and attributes with their types, scratch memory, errors and futures, but no stream
// and no state. TK6112 when the handler was made for another version of the ABI, or keeps state.
Status RegisterFfiTarget(const std::string& target, void* handler);

}  // namespace tokamak
