#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "kernel/kernel.h"
#include "lower/lower.h"
#include "support/result.h"

namespace tokamak {

// The CUDA C++ source of a kernel. Returns TK6003 if this build has no CUDA backend, TK4120 if the
// kernel cannot be expressed in CUDA C++.
Result<std::string> CudaTextOf(const Kernel& kernel);
// The source of a horizontally fused launch; each kernel with its number of blocks.
Result<std::string> CudaTextOfHorizontal(
    const std::string& name, const std::vector<std::pair<const Kernel*, int64_t>>& entries);

// The source of a loop that is one persistent kernel (LoweredProgram::persistent).
Result<std::string> CudaTextOfLoop(const RunStep& loop, const LoweredProgram& program);

}  // namespace tokamak
