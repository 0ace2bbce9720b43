#pragma once

#include <string>

#include "cost/rates.h"
#include "support/result.h"

namespace tokamak {

// Is told what is measured next, and how much is done.
class CalibrationWatcher {
 public:
  virtual ~CalibrationWatcher() = default;
  virtual void Progress(const std::string& what, double share) = 0;
};

// Measures this machine with kernels of the CPU backend.
Result<Rates> CalibrateHost(CalibrationWatcher& watcher);

}  // namespace tokamak
