#include "cli/json_error.h"

#include <nlohmann/json.hpp>

#include "support/json_text.h"

namespace tokamak {

nlohmann::json ToJson(const Error& error) {
  nlohmann::json json = {{"code", CodeText(error.code)},
                         {"message", error.message},
                         {"exit", static_cast<int>(InfoOf(error.code).exit)},
                         {"file", error.where.file}};
  if (error.where.line > 0) {
    json["line"] = error.where.line;
    json["column"] = error.where.column;
  } else if (error.where.offset >= 0) {
    json["offset"] = error.where.offset;
  }
  if (!error.notes.empty()) json["notes"] = error.notes;
  return json;
}

std::string JsonLine(const nlohmann::json& json) {
  return JsonText(json) + "\n";
}

}  // namespace tokamak
