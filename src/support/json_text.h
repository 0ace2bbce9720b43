#pragma once

#include <optional>
#include <string>

#include <nlohmann/json.hpp>

namespace tokamak {

// On one line, or with an indent per level. Names and paths of the user may not be UTF-8: their
// wrong bytes are replaced.
inline std::string JsonText(const nlohmann::json& value, int indent = -1) {
  return value.dump(indent, ' ', /*ensure_ascii=*/false, nlohmann::json::error_handler_t::replace);
}

// The value, or null.
template <typename T>
nlohmann::json OrNull(const std::optional<T>& value) {
  return value ? nlohmann::json(*value) : nlohmann::json(nullptr);
}

}  // namespace tokamak
