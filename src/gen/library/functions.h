#pragma once

#include "ir/ir.h"

namespace tokamak {

// Whether a function of the runtime does the instruction (fft, cholesky, triangular-solve): a step
// of its own, which is not the interpreter's.
bool HasLibraryFunction(const Instr& instr);

}  // namespace tokamak
