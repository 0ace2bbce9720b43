#pragma once

#include <memory>

#include "driver/compilation.h"
#include "driver/executable.h"
#include "support/result.h"

namespace tokamak {

// Makes the code of a program's kernels and host steps on the host.
Result<std::shared_ptr<const Executable>> MakeCpuExecutable(
    std::shared_ptr<const Compilation> compilation);

}  // namespace tokamak
