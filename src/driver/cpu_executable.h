#pragma once

#include <memory>

#include "driver/executable.h"
#include "explain/decision.h"
#include "ir/ir.h"
#include "support/result.h"

namespace tokamak {

// Who makes code of kernels; kGpuSimulator: of kernels for a GPU.
enum class KernelMaker : uint8_t { kSimulator, kGpuSimulator, kMachineCode };

// An executable of kernels and host steps for the (verified, optimized) module. Null when the
// program is one that only the interpreter runs (several devices, sizes known at run time only):
// the module is left as it is then, and the log says why.
Result<std::shared_ptr<const Executable>> MakeCpuExecutable(std::unique_ptr<Module>& module,
                                                            const CompileOptions& options,
                                                            KernelMaker maker, DecisionLog& log);

}  // namespace tokamak
