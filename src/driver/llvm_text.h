#pragma once

#include <string>

#include "kernel/kernel.h"
#include "support/result.h"

namespace tokamak {

// A kernel as LLVM IR for this processor, as its code is made of. TK6003 when this build has no CPU
// backend.
Result<std::string> LlvmTextOf(const Kernel& kernel);

}  // namespace tokamak
