#pragma once

#include <string>

#include "backend/cuda/cuda_text.h"
#include "gen/library/custom_kernel.h"
#include "runtime/c_compiler.h"
#include "support/result.h"

// The complete source texts of custom kernels: definitions of types, shapes and hooks, then the
// user's text under its own file name and line numbers (docs/custom_kernels.md).

namespace tokamak {

// The function that runs a block of a CPU kernel: void tok_run(int64_t block, int64_t blocks,
// void* const* arrays), with the operands, then the results of the step.
inline constexpr const char* kCustomKernelRun = "tok_run";

// TK4010 if the kernel has no such source, TK4007 if a hook has no code.
Result<CSource> CSourceOf(const CustomKernelStep& step);
// A __global__ function with the name of the kernel. Its parameters are the operands, then the
// results of the step.
Result<cuda::CudaSource> CudaSourceOf(const CustomKernelStep& step);

}  // namespace tokamak
