#pragma once

#include <string>
#include <string_view>

#include "kernel/kernel.h"
#include "kernel/write.h"
#include "support/result.h"

namespace tokamak {

struct ParsedKernel {
  Kernel kernel;
  KernelPlaces places;  // in the text that was read
};

// Reads one kernel as WriteKernel writes it (write.h shows the form; `//` begins a comment). Values
// may have any names and stand anywhere above their uses; a definition may be there again. What it
// gives is not verified.
Result<ParsedKernel> ParseKernel(std::string_view text, const std::string& file);

}  // namespace tokamak
