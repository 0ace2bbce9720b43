#pragma once

#include "backend/cuda/gpu.h"
#include "driver/measure_steps.h"

namespace tokamak {

// MeasureSteps for a program that was lowered for a GPU: its launches, packs and products. What is
// short is measured as a graph of many of it, so a time has what the model's has: the gap between
// two kernels of a graph, not that between two launches of a stream.
Result<StepTimes> MeasureSteps(const Module& module, const LoweredProgram& program, cuda::Gpu& gpu,
                               const MeasureOptions& options);

}  // namespace tokamak
