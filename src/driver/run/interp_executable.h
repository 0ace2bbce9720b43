#pragma once

#include <memory>

#include "driver/compile/compilation.h"
#include "driver/run/executable.h"
#include "ir/ir.h"
#include "support/result.h"

namespace tokamak {

// An executable that interprets the compilation's module.
Result<std::shared_ptr<const Executable>> MakeInterpExecutable(
    std::shared_ptr<const Compilation> compilation);

}  // namespace tokamak
