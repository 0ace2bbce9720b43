#pragma once

#include <span>
#include <string>
#include <vector>

#include "fusion/plan.h"
#include "interp/value.h"
#include "ir/ir.h"
#include "support/result.h"

// Measures a program under each fusion mode (`tokamak bench`).

namespace tokamak {

struct BenchOptions {
  std::string backend;  // empty: the best backend that is built
  std::vector<FusionMode> modes = {FusionMode::kNone, FusionMode::kXlaPasses, FusionMode::kGreedy,
                                   FusionMode::kSearch};
  Effort effort = Effort::kDefault;
  double seconds = 2;  // time budget of all measurements together
  int64_t repetitions = 15;
};

// The measurements of one fusion mode.
struct BenchRow {
  std::string mode;
  int64_t launches = 0;
  size_t host_steps = 0;
  double compile_ms = 0;
  std::vector<double> us;  // microseconds per call, one sample per repetition; sorted

  double best() const { return us.front(); }
  double median() const { return us[us.size() / 2]; }
  double most() const { return us.back(); }
};

class BenchWatcher {
 public:
  virtual ~BenchWatcher() = default;
  virtual void Progress(const std::string& now) = 0;
};

// Compiles the program once per fusion mode, then measures the executables interleaved: each
// repetition times every executable for long enough to be resolved by the clock. For a device
// backend the arrays are in device memory. Progress goes to the watcher.
Result<std::vector<BenchRow>> Bench(const Module& module, std::span<const Value> arguments,
                                    const BenchOptions& options, BenchWatcher& watcher);

}  // namespace tokamak
