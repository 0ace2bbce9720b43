#pragma once

#include <string>

#include "support/result.h"

namespace tokamak {

// Registers `handler`, a function for XLA's typed custom calls (jax.ffi.register_ffi_target), under
// the name `target`. Only the execute stage is called. The handler gets typed arrays and
// attributes, scratch memory, errors and futures, but no stream and no state. Returns TK6112 if the
// handler was built for another version of the ABI or keeps state.
Status RegisterFfiTarget(const std::string& target, void* handler);

}  // namespace tokamak
