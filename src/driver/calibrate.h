#pragma once

#include <functional>
#include <string>

#include "cost/rates.h"
#include "support/result.h"

namespace tokamak {

// Measures this machine with kernels of the CPU backend. `progress` is told what comes next and how
// much is done.
Result<Rates> CalibrateHost(const std::function<void(const std::string&, double)>& progress);

}  // namespace tokamak
