#pragma once

#include <cstddef>
#include <map>
#include <utility>

#include "driver/compile/compilation.h"
#include "runtime/steps.h"
#include "support/result.h"

// Measured times of the steps of a program, as a report takes them.

namespace tokamak {

// Identifies a step by kind and number. A horizontally fused launch has the number of its first
// kernel.
using StepKey = std::pair<StepKind, size_t>;
StepKey KeyOf(const RunStep& step);

// Microseconds per step: the median of several consecutive runs of the step alone, on the arguments
// that it has in the program.
using StepTimes = std::map<StepKey, double>;

// Measures the steps of a compilation on the device of its target, for about `seconds` per step.
using StepMeasurer = Result<StepTimes> (*)(const Compilation& compilation, double seconds);

}  // namespace tokamak
