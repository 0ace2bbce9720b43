#pragma once

#include <string>

#include "cost/rates.h"
#include "support/result.h"

namespace tokamak {

// Receives the name of the next measurement and the completed fraction.
class CalibrationWatcher {
 public:
  virtual ~CalibrationWatcher() = default;
  virtual void Progress(const std::string& what, double fraction) = 0;
};

// Measures the rates of this machine with kernels of the CPU backend (`tokamak calibrate`).
Result<Rates> CalibrateHost(CalibrationWatcher& watcher);

}  // namespace tokamak
