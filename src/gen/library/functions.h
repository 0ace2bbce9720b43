#pragma once

#include "ir/ir.h"

// Which linear-algebra instructions are calls of runtime functions.

namespace tokamak {

// Whether a runtime function computes the instruction (fft, cholesky, triangular-solve). Lowering
// makes it a call of that function; without one the reference interpreter would compute the
// instruction on the host (lower/lower.h). UsesRuntimeFunction (sorts.h) includes these on CPUs. In
// a program for a GPU the call runs on the host, with copies of its arrays, unless a library of the
// GPU has the op (driver/device_program.cc).
bool HasRuntimeFunction(const Instr& instr);

}  // namespace tokamak
