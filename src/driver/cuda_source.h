#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "kernel/kernel.h"
#include "lower/lower.h"
#include "support/result.h"

namespace tokamak {

// A kernel as CUDA C++. TK6003 when this build has no CUDA backend, TK4120 when CUDA C++ has no
// form for it.
Result<std::string> CudaTextOf(const Kernel& kernel);
// Of kernels that are one launch, each with its number of teams.
Result<std::string> CudaTextOfPack(const std::string& name,
                                   const std::vector<std::pair<const Kernel*, int64_t>>& parts);

// Of a loop that is one launch (LoweredProgram::persistent).
Result<std::string> CudaTextOfLoop(const RunStep& loop, const LoweredProgram& program);

}  // namespace tokamak
