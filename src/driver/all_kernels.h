#pragma once

#include <string>
#include <vector>

#include "ir/ir.h"
#include "lower/lower.h"
#include "support/result.h"

namespace tokamak {

// Whether a host step is the host's by its meaning (a call of a function of the host, a check, a
// feed), or what stands in for a kernel that does not exist.
bool BelongsToHost(const Instr& instr);

// TK4005 names the first instruction of a program that the interpreter does for want of a kernel,
// why, its line in the user's source, and the others. What belongs to the host is not meant.
Status CheckAllKernels(const LoweredProgram& program, const Module& module);

}  // namespace tokamak
