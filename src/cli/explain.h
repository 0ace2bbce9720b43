#pragma once

#include <memory>

#include "cli/commands.h"
#include "driver/compile/compilation.h"
#include "driver/report/explain.h"

namespace tokamak {

// The explain request that the command line specifies.
Result<ExplainRequest> RequestOf(const ExplainCommand& command);

// `tokamak explain --diff A B`: compares two plans of one program, or the plans of two programs.
int ExplainDiff(const ExplainCommand& command, Console& console);

// Checks the plan that `program` became.
Status CheckPlan(const PlanChecks& checks, std::shared_ptr<const Compilation> made,
                 const Module& program, Console& console);

}  // namespace tokamak
