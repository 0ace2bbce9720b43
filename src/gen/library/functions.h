#pragma once

#include "ir/ir.h"

// Which linear-algebra instructions are calls of runtime functions.

namespace tokamak {

// Whether a function of the CPU runtime computes the instruction (fft, cholesky, triangular-solve).
// In a program for a CPU, lowering makes it a call of that function (UsesRuntimeFunction, sorts.h).
// In a program for a GPU it is a host step, which the reference interpreter evaluates
// (fusion/plan.h), unless a library of the GPU has the op (driver/compile/device_program.cc).
bool HasRuntimeFunction(const Instr& instr);

}  // namespace tokamak
