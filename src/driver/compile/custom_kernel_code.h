#pragma once

#include <memory>
#include <span>

#include "gen/library/custom_kernel.h"
#include "interp/value.h"
#include "runtime/library_call.h"
#include "support/result.h"

// Custom kernels as machine code of this process.

namespace tokamak {

// The calls of a program, ready to run: kernels of the user are compiled. TK4007 to TK4010.
using LoadedCalls = std::vector<std::shared_ptr<const LibraryCall>>;
Result<LoadedCalls> LoadCalls(const LoadedCalls& planned, std::span<const Instr* const> instrs);

// Whether the host can run the kernels of these steps, others are ignored: their sources compile.
Status CheckCustomKernels(std::span<const Instr* const> steps);

// Evaluates a call in a child process, for the interpreter. TK4007 to TK4011.
Result<Value> EvaluateCustomKernel(const Instr& call, std::span<const Value> operands);

}  // namespace tokamak
