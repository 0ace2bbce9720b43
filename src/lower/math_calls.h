#pragma once

#include <memory>

#include "ir/ir.h"
#include "runtime/library_call.h"

namespace tokamak {

// What does an fft, a cholesky or a triangular-solve for which the runtime has a function.
std::shared_ptr<const LibraryCall> MathCallOf(const Instr& instr);

}  // namespace tokamak
