#pragma once

#include <nlohmann/json_fwd.hpp>

#include "support/error.h"

namespace tokamak {

// {"code": "TK2103", "message": ..., "file": ..., "line": 7, "column": 19};
// bytecode has "offset" in place of line and column.
nlohmann::json ToJson(const Error& error);
// JSON in one line. Bytes that are not UTF-8 are replaced.
std::string JsonLine(const nlohmann::json& json);

}  // namespace tokamak
