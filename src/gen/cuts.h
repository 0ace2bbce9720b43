#pragma once

#include <cstdint>
#include <vector>

#include "kernel/kernel.h"

namespace tokamak {

// Where comparisons of a loop's variable with constants change their minds: i, when they decide
// otherwise at i than at i - 1. Ascending, from 1 to extent - 1. Comparisons that depend on other
// variables, too, are not counted.
std::vector<int64_t> CutsOf(const Kernel& kernel, ValueId variable, int64_t extent);

// The same, moved to multiples of `unit`: what lies around a cut is a piece of its own.
std::vector<int64_t> AlignedCuts(const std::vector<int64_t>& cuts, int64_t unit, int64_t extent);

}  // namespace tokamak
