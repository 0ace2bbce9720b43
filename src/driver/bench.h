#pragma once

#include <span>
#include <string>
#include <vector>

#include "fusion/plan.h"
#include "interp/value.h"
#include "ir/ir.h"
#include "support/result.h"

// How long a program takes by each way of fusing it, measured.

namespace tokamak {

struct BenchOptions {
  std::string backend;  // "": the best that is built
  std::vector<FusionMode> modes = {FusionMode::kNone, FusionMode::kRules, FusionMode::kGreedy,
                                   FusionMode::kSearch};
  Effort effort = Effort::kDefault;
  double seconds = 2;  // of measuring, in all
  int64_t rounds = 15;
};

// One way.
struct BenchRow {
  std::string mode;
  int64_t launches = 0;
  size_t host_steps = 0;
  double compile_ms = 0;
  std::vector<double> us;  // of a call, one number a round; sorted

  double best() const { return us.front(); }
  double median() const { return us[us.size() / 2]; }
  double most() const { return us.back(); }
};

class BenchWatcher {
 public:
  virtual ~BenchWatcher() = default;
  virtual void Progress(const std::string& now) = 0;
};

// Compiles the program by each way, then calls them in turn, round after round, each long enough
// for the clock. Arrays of a program for a device lie in the device's memory. The watcher is
// told what is done now.
Result<std::vector<BenchRow>> Bench(const Module& module, std::span<const Value> arguments,
                                    const BenchOptions& options, BenchWatcher& watcher);

}  // namespace tokamak
