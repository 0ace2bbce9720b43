#pragma once

#include "ir/ir.h"

// Which linear-algebra instructions are calls of runtime functions.

namespace tokamak {

// Whether a runtime function computes the instruction (fft, cholesky, triangular-solve). Lowering
// makes it a call of that function; without one the reference interpreter would compute the
// instruction on the host (lower/lower.h). UsesRuntimeFunction (sorts.h) includes these on CPUs.
bool HasRuntimeFunction(const Instr& instr);

}  // namespace tokamak
