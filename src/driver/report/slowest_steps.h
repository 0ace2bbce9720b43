#pragma once

#include <cstddef>
#include <vector>

#include "driver/report/compile_report.h"

namespace tokamak {

// Numbers of the steps that run kernels, by the predicted time of all steps of equal code: those
// that take most of it first, equal ones in their order.
std::vector<size_t> SlowestKernelSteps(const CompileReport& report);

}  // namespace tokamak
