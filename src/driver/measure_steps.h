#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "ir/ir.h"
#include "lower/lower.h"
#include "runtime/steps.h"
#include "support/result.h"

namespace tokamak {

struct MeasureOptions {
  double seconds = 0.03;  // for one step, when it is short
  int64_t most = 15;      // measurements of a step, at most; 3 at least
};

// Which step: its kind and number. A pack is known by its first kernel.
using StepKey = std::pair<StepKind, size_t>;
StepKey KeyOf(const RunStep& step);

// Microseconds of steps: the median of several runs of the step alone, one after the other, with
// the arguments that the program has for it.
using StepTimes = std::map<StepKey, double>;

// Runs a lowered program on drawn arguments and measures its kernels, products, calls and host
// steps where it first comes to them. Needs the CPU backend.
Result<StepTimes> MeasureSteps(const Module& module, const LoweredProgram& program,
                               const MeasureOptions& options);

// For those who measure elsewhere. Fills an array: reals in (-1, 1), integers from 0 to 1023, as
// far as the type goes.
void DrawArray(std::byte* data, int64_t bytes, ElementType type, uint64_t seed);
double MedianOf(std::vector<double> times);

}  // namespace tokamak
