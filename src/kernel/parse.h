#pragma once

#include <string>
#include <string_view>

#include "kernel/kernel.h"
#include "kernel/write.h"
#include "support/result.h"

namespace tokamak {

struct ParsedKernel {
  Kernel kernel;
  KernelLocations locations;  // in the parsed text
};

// Parses one kernel in the syntax of WriteKernel (write.h); `//` starts a comment. Values may have
// any names and may be defined anywhere above their uses; repeated definitions are allowed. The
// result is not verified.
Result<ParsedKernel> ParseKernel(std::string_view text, const std::string& file);

}  // namespace tokamak
