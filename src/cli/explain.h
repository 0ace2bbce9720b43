#pragma once

#include "cli/commands.h"
#include "driver/report/explain.h"

namespace tokamak {

// The explain request that the command line specifies.
Result<ExplainRequest> RequestOf(const ExplainCommand& command);

// `tokamak explain --diff A B`: compares two plans of one program, or the plans of two programs.
int ExplainDiff(const ExplainCommand& command, Console& console);

}  // namespace tokamak
