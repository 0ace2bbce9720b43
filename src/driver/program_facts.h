#pragma once

#include <vector>

#include "driver/executable.h"
#include "ir/ir.h"
#include "support/result.h"

// What can be said of a program before it runs.

namespace tokamak {

// The parameters and results of the entry. TK6116 for what no buffer holds: tuples inside tuples,
// dynamic sizes without bounds.
Result<std::vector<ParameterInfo>> ParametersOf(const Module& module);
Result<std::vector<ArrayInfo>> ResultsOf(const Module& module);

// Each instruction counted once, loops too; called computations where they are called.
CostAnalysis CostOf(const Module& module);

// Whether any custom call may reach a function of the host.
bool CallsHost(const Module& module);

// Says which line of the user's program an error is about, if the instruction at its place has an
// origin.
void AddOrigin(Error& error, const Module& module);

}  // namespace tokamak
