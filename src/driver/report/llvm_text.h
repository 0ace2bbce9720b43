#pragma once

#include <string>

#include "kernel/kernel.h"
#include "support/result.h"

namespace tokamak {

// The LLVM IR from which a kernel's code for this processor is generated. Returns TK6003 if this
// build has no CPU backend.
Result<std::string> LlvmTextOf(const Kernel& kernel);

}  // namespace tokamak
