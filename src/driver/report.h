#pragma once

#include <nlohmann/json_fwd.hpp>

namespace tokamak {

// Who is told, in JSON, what is compiled and run (<tokamak/c_api.h>, tok_set_report). Nobody by
// default.
using ReportFn = void (*)(const char* json, void* user);
void SetReport(ReportFn fn, void* user);
// Cheap: to be asked before a report is put together.
bool IsReporting();
// Names may be any bytes: what is no UTF-8 in them is replaced.
void Report(const nlohmann::json& event);

}  // namespace tokamak
