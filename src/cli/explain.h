#pragma once

#include "cli/commands.h"
#include "driver/account/explain.h"

namespace tokamak {

// What the command asks for.
Result<ExplainRequest> RequestOf(const ExplainCommand& command);

// `tokamak explain --diff A B`: two plans of one program, or the plans of two.
int ExplainDiff(const ExplainCommand& command, Console& console);

}  // namespace tokamak
