#pragma once

#include "driver/compile/compilation.h"
#include "driver/report/step_times.h"
#include "support/result.h"

namespace tokamak {

// A StepMeasurer: measures on the CPU, or on the GPU of the target. Returns TK4201 if the target is
// a GPU that this machine does not have.
Result<StepTimes> MeasureCompilation(const Compilation& compilation, double seconds);

}  // namespace tokamak
