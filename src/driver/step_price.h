#pragma once

#include <vector>

#include "lower/lower.h"
#include "runtime/steps.h"

namespace tokamak {

// Microseconds that the steps take, roughly, before anybody has measured it. Whatever may take any
// time (a loop) costs a millisecond at least.
double PriceOf(const std::vector<RunStep>& steps, const LoweredProgram& program);

}  // namespace tokamak
