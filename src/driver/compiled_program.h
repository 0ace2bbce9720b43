#pragma once

#include <cstddef>
#include <vector>

#include "driver/executable.h"
#include "ir/ir.h"
#include "support/result.h"

// Helpers shared by the executables that run kernels (CPU and CUDA).

namespace tokamak {

Result<std::vector<std::byte>> BytesOfConstant(const Instr& constant);

MemoryAnalysis MemoryOf(const std::vector<ParameterInfo>& parameters,
                        const std::vector<ArrayInfo>& results, int64_t arena_bytes);

}  // namespace tokamak
