#pragma once

#include <memory>
#include <span>

#include "gen/library/custom_kernel.h"
#include "interp/value.h"
#include "runtime/library_call.h"
#include "support/result.h"

// Custom kernels as machine code of this process.

namespace tokamak {

// The compiled call of a step (CustomKernelIn), to run in place of `planned`, whose text and cost
// it has. TK4007 to TK4010.
Result<std::shared_ptr<const LibraryCall>> LoadCustomKernel(
    const Instr& instr, std::shared_ptr<const LibraryCall> planned);

// Evaluates a call in a child process, for the interpreter. TK4007 to TK4011.
Result<Value> EvaluateCustomKernel(const Instr& call, std::span<const Value> operands);

}  // namespace tokamak
