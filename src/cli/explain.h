#pragma once

#include "cli/commands.h"
#include "driver/account/account.h"

namespace tokamak {

// The account that the command asks for.
Result<AccountOptions> OptionsOf(const ExplainCommand& command);

// `tokamak explain --diff A B`: two plans of one program, or the plans of two.
int ExplainDiff(const ExplainCommand& command, Console& console);

}  // namespace tokamak
