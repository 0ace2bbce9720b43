#pragma once

#include <string>
#include <vector>

#include "kernel/kernel.h"

namespace tokamak {

// A kernel for the formula of each elementwise op of each of a few types, one element a thread.
std::vector<Kernel> FormulaKernels();

}  // namespace tokamak
