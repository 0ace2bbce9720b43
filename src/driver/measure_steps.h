#pragma once

#include <cstdint>
#include <map>
#include <utility>

#include "ir/ir.h"
#include "lower/lower.h"
#include "runtime/steps.h"
#include "support/result.h"

namespace tokamak {

struct MeasureOptions {
  double seconds = 0.03;  // for one step, when it is short
  int64_t most = 15;      // measurements of a step, at most; 3 at least
};

// Microseconds of steps, by kind and number (RunStep::target): the median of several runs of the
// step alone, one after the other, with the arguments that the program has for it.
using StepTimes = std::map<std::pair<StepKind, size_t>, double>;

// Runs a lowered program on drawn arguments and measures its kernels, products, calls and host
// steps where it first comes to them. Needs the CPU backend.
Result<StepTimes> MeasureSteps(const Module& module, LoweredProgram& program,
                               const MeasureOptions& options);

}  // namespace tokamak
