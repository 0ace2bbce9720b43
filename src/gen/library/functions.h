#pragma once

#include "ir/ir.h"

// Which instructions are calls of runtime functions.

namespace tokamak {

// Whether a runtime function computes the instruction (fft, cholesky, triangular-solve): a step of
// its own instead of an interpreter step.
bool HasLibraryFunction(const Instr& instr);

}  // namespace tokamak
