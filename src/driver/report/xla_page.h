#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "driver/report/compile_report.h"
#include "driver/report/xla_dump.h"

namespace tokamak {

// A dump as JSON: its kernels, and the boundaries between them.
nlohmann::json JsonOf(const DumpedProgram& dumped);

// What the page of a dump shows:
//   "given"    the dump (JsonOf); each boundary also has "ours": "fused" if a step of ours does
//              work of both kernels, "stored" if none does, null for results and control flow;
//              and "why": our decision about a stored one, {rule, because, before_us, after_us},
//              or null
//   "tokamak"  the report of the same program compiled by us (JsonOf of write.h, without
//              decisions); each step also has "given": the numbers of the kernels of the dump that
//              its instructions come from, with their number, as [kernel, instructions]
//   "rules"    the meaning of each rule of XLA that a boundary names
//   "xla_steps"  the steps that result if the kernels of the dump are the plan, with kernels of
//              ours: {name, kind, us, given}, us of all runs; or a text, why there are none
// `ours` and `given` come from a module with the marks of MarkDumpedKernels.
struct DumpPlans {
  CompileReport ours;
  Result<CompileReport> given;
};
nlohmann::json XlaPageData(const DumpedProgram& dumped, const DumpPlans& plans);

// The page with that data.
std::string XlaPage(const DumpedProgram& dumped, const DumpPlans& plans, const std::string& title);

}  // namespace tokamak
