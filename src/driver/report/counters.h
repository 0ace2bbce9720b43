#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "fusion/plan.h"
#include "ir/ir.h"
#include "support/result.h"

// GPU resources used by the kernels of a program. NVRTC compiles them; no GPU is needed.

namespace tokamak {

struct LaunchCounters {
  std::string name;
  std::string generator;    // as in explain, including "library" and "copy"
  int64_t runs = 1;         // per call of the program
  int64_t bytes = 0;        // read and written per run
  double predicted_us = 0;  // per run
  // Kernels only.
  struct Code {
    int registers = 0, spilled_bytes = 0;  // per thread
    int64_t threads = 0, blocks = 0, shared_bytes = 0;
    double occupancy = 0;  // resident threads per SM / maximum
  };
  std::optional<Code> code;
};

// Counters of the program fused by `mode` for an H200. Returns TK6003 if this build has no CUDA
// backend, TK4122 if NVRTC is not available.
Result<std::vector<LaunchCounters>> CountersOf(const Module& module, FusionMode mode);

}  // namespace tokamak
