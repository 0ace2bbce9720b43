#pragma once

#include <string>
#include <vector>

#include "ir/ir.h"
#include "lower/lower.h"
#include "support/result.h"

// `require_kernels`: rejects programs that would fall back to the interpreter.

namespace tokamak {

// Whether a host step has to run on the host by its semantics (a host callback, a check, a feed).
// False for steps that are interpreted because no kernel implements them.
bool BelongsToHost(const Instr& instr);

// Returns TK4005 if the interpreter runs any instruction for lack of a kernel. The error names the
// first one, the reason, its source line, and lists the others. Steps that belong to the host
// (BelongsToHost) are not reported.
Status CheckAllKernels(const LoweredProgram& program, const Module& module);

}  // namespace tokamak
