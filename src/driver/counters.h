#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "fusion/plan.h"
#include "ir/ir.h"
#include "support/result.h"

// What the kernels of a program take of a GPU: NVRTC compiles them, no GPU is needed.

namespace tokamak {

struct LaunchCounters {
  std::string name;
  std::string generator;    // as explain has it; "library" and "copy" among them
  int64_t runs = 1;         // of one call of the program
  int64_t bytes = 0;        // read and written by one run
  double predicted_us = 0;  // of one run
  // Of kernels.
  struct Code {
    int registers = 0, spilled_bytes = 0;  // of a thread
    int64_t threads = 0, teams = 0, team_bytes = 0;
    double occupancy = 0;  // threads that a multiprocessor holds, of those that it can
  };
  std::optional<Code> code;
};

// Of the program fused by `mode` for an H200. TK6003 when this build has no CUDA backend, TK4122
// where there is no NVRTC.
Result<std::vector<LaunchCounters>> CountersOf(const Module& module, FusionMode mode);

}  // namespace tokamak
