#pragma once

#include "backend/cuda/gpu.h"
#include "driver/measure/measure_steps.h"

namespace tokamak {

// MeasureSteps for a program lowered for a GPU: its launches, horizontally fused launches and
// library calls. A short step is measured as a graph of many copies. The time then includes the gap
// between two kernels of a graph, as the cost model does, and not the gap between two stream
// launches.
Result<StepTimes> MeasureSteps(const Module& module, const LoweredProgram& program, cuda::Gpu& gpu,
                               const MeasureOptions& options);

}  // namespace tokamak
