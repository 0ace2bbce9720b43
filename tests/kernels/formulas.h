#pragma once

#include <string>
#include <vector>

#include "kernel/kernel.h"

namespace tokamak {

// Returns one kernel per elementwise op and type for a few types; each thread computes one element.
std::vector<Kernel> FormulaKernels();

}  // namespace tokamak
