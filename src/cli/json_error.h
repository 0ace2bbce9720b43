#pragma once

#include <nlohmann/json_fwd.hpp>

#include "support/error.h"

namespace tokamak {

// {"code": "TK2103", "message": ..., "file": ..., "line": 7, "column": 19}; for bytecode, "offset"
// instead of line and column.
nlohmann::json ToJson(const Error& error);
// JSON on one line. Invalid UTF-8 is replaced.
std::string JsonLine(const nlohmann::json& json);

}  // namespace tokamak
