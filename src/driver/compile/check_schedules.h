#pragma once

#include "cost/machine.h"
#include "fusion/schedule_choice.h"
#include "lower/lower.h"
#include "support/result.h"

namespace tokamak {

// Returns TK6107 for the first forced schedule that names no kernel of the program or does not fit
// its kernel. The error says why.
Status CheckSchedules(const LoweredProgram& program, const ScheduleOptions& options,
                      const Machine& machine);

}  // namespace tokamak
