#pragma once

#include <memory>

#include "driver/compile/compilation.h"
#include "driver/run/executable.h"
#include "support/result.h"

namespace tokamak {

// Generates and loads the code of a compilation's kernels on the device of its target.
Result<std::shared_ptr<const Executable>> MakeExecutable(
    std::shared_ptr<const Compilation> compilation);

// Compile and MakeExecutable for the backend that the options name; every frontend that runs
// programs calls this. Applies TOKAMAK_CHECK and reports what TOKAMAK_DEBUG requests.
Result<std::shared_ptr<const Executable>> CompileAndLoad(std::unique_ptr<Module> module,
                                                         const CompileOptions& options);
// For a target that need not be one of a backend.
Result<std::shared_ptr<const Executable>> CompileAndLoad(std::unique_ptr<Module> module,
                                                         const Target& target,
                                                         const CompileOptions& options);

}  // namespace tokamak
