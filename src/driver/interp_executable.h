#pragma once

#include <memory>

#include "driver/executable.h"
#include "ir/ir.h"
#include "support/result.h"

namespace tokamak {

// An executable that interprets the (verified) module.
Result<std::shared_ptr<const Executable>> MakeInterpExecutable(std::unique_ptr<Module> module,
                                                               const CompileOptions& options);

}  // namespace tokamak
