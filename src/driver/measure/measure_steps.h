#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "driver/report/step_times.h"
#include "ir/ir.h"
#include "lower/lower.h"
#include "runtime/steps.h"
#include "support/result.h"

// Measures the steps of a lowered program individually (`explain --measure`).

namespace tokamak {

struct MeasureOptions {
  double seconds = 0.03;  // time budget of one short step
  int64_t most = 15;      // maximum number of measurements of a step; the minimum is 3
};

// Runs a lowered program on random arguments and measures each kernel, library call, host call and
// host step when it is first reached. Needs the CPU backend.
Result<StepTimes> MeasureSteps(const Module& module, const LoweredProgram& program,
                               const MeasureOptions& options);

// Helpers for other measurements. DrawArray fills an array with random reals in (-1, 1) or integers
// from 0 to 1023 (fewer for 8-bit types).
void DrawArray(std::byte* data, int64_t bytes, ElementType type, uint64_t seed);
double MedianOf(std::vector<double> times);

}  // namespace tokamak
