#pragma once

#include <cstddef>
#include <vector>

#include "driver/executable.h"
#include "driver/fusion_options.h"
#include "explain/decision.h"
#include "ir/ir.h"
#include "lower/lower.h"
#include "support/result.h"

// What executables of kernels have in common, whatever runs the kernels.

namespace tokamak {

// Whether the program can be made steps. When only the interpreter can run it, the log says why, or
// it is TK4005 where kernels are required.
Result<bool> CanBeLowered(const Module& module, const CompileOptions& options, DecisionLog& log);

// How a program is lowered, but for the machine.
LowerOptions LowerOptionsOf(const CompileOptions& options, const FusionChoice& fusion,
                            const std::vector<ParameterInfo>& parameters);

Result<std::vector<std::byte>> BytesOfConstant(const Instr& constant);

MemoryAnalysis MemoryOf(const std::vector<ParameterInfo>& parameters,
                        const std::vector<ArrayInfo>& results, int64_t arena_bytes);

}  // namespace tokamak
