#pragma once

#include <string>
#include <vector>

#include "cost/machine.h"
#include "driver/report/compile_report.h"
#include "explain/decision.h"

namespace tokamak {

// For each record of the report, the nearest change that would turn a rejection into an acceptance,
// derived from the record's numbers ("would fuse if it had one user, not 3"). Empty for accepted
// records and where no change is known.
std::vector<std::string> CounterFacts(const CompileReport& report);

// For a move rejected by cost: microseconds before and after, and the cost of a launch. The move
// removes one kernel.
std::string WouldPayIf(double before, double after, double launch);

}  // namespace tokamak
