#pragma once

#include <string>

#include "kernel/kernel.h"
#include "support/result.h"

namespace tokamak {

// A kernel as CUDA C++. TK6003 when this build has no CUDA backend, TK4120 when CUDA C++ has no
// form for it.
Result<std::string> CudaTextOf(const Kernel& kernel);

}  // namespace tokamak
