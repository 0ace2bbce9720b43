#pragma once

#include <nlohmann/json_fwd.hpp>

#include "driver/report/compile_report.h"

namespace tokamak {

// The timeline of a report in the JSON of Chrome traces, which Perfetto and chrome://tracing open.
// Three processes: the steps as predicted, with a counter of live temporary memory; the steps as
// measured, if they were; the compilation. A track for each device and for the host. A step of a
// loop is one slice for all of its runs.
nlohmann::json TraceOf(const CompileReport& report);

}  // namespace tokamak
