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

// Writes the page of --html, and prints its name and size.
Status WritePage(const std::string& file, const std::string& page, Console& console);
// The file of a program's page: the file that --html names, with a number from the second program
// on ("page.html", "page.2.html").
std::string PageFile(const std::string& file, int program);

// Checks the plan that `program` became.
Status CheckPlan(const PlanChecks& checks, std::shared_ptr<const Compilation> made,
                 const Module& program, Console& console);

}  // namespace tokamak
