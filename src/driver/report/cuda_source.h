#pragma once

#include <string>

#include "kernel/kernel.h"
#include "lower/lower.h"
#include "support/result.h"

namespace tokamak {

// The CUDA C++ source of a kernel. Returns TK6003 if this build has no CUDA backend, TK4120 if the
// kernel cannot be expressed in CUDA C++.
Result<std::string> CudaTextOf(const Kernel& kernel);

// The source of a step that is one launch: of a kernel, of several (kHorizontal), or of a loop that
// is one persistent kernel (LoweredProgram::persistent). Returns the same errors.
struct LaunchText {
  std::string name;  // of the function
  std::string text;
};
Result<LaunchText> CudaTextOfLaunch(const RunStep& step, const LoweredProgram& program);

}  // namespace tokamak
