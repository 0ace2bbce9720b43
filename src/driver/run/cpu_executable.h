#pragma once

#include <memory>

#include "driver/compile/compilation.h"
#include "driver/run/executable.h"
#include "support/result.h"

namespace tokamak {

// Generates host code for a program's kernels and prepares its host steps.
Result<std::shared_ptr<const Executable>> MakeCpuExecutable(
    std::shared_ptr<const Compilation> compilation);

}  // namespace tokamak
