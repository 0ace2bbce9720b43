#include "rewrite/json.h"

#include <cstdint>
#include <cstdlib>

namespace tokamak {
namespace {

constexpr int kMaxDepth = 32;

class JsonParser {
 public:
  explicit JsonParser(std::string_view text) : rest_(text) {}

  bool Value(Json& into, int depth) {
    Skip();
    if (rest_.empty() || depth > kMaxDepth) return false;
    if (rest_[0] == '{') return Dict(into, depth);
    if (rest_[0] == '[') return List(into, depth);
    if (rest_[0] == '"') return String(into.text);
    size_t end = rest_.find_first_of(",]} \t\r\n");
    into.text = rest_.substr(0, end);
    rest_.remove_prefix(into.text.size());
    return !into.text.empty();
  }
  bool AtEnd() {
    Skip();
    return rest_.empty();
  }

 private:
  void Skip() {
    while (!rest_.empty() && std::string_view(" \t\r\n").find(rest_[0]) != std::string_view::npos)
      rest_.remove_prefix(1);
  }
  bool Take(char c) {
    Skip();
    if (rest_.empty() || rest_[0] != c) return false;
    rest_.remove_prefix(1);
    return true;
  }
  bool String(std::string& into) {
    if (!Take('"')) return false;
    while (!rest_.empty() && rest_[0] != '"') {
      if (rest_[0] == '\\') rest_.remove_prefix(1);
      if (rest_.empty()) return false;
      into += rest_[0];
      rest_.remove_prefix(1);
    }
    return Take('"');
  }
  bool List(Json& into, int depth) {
    into.kind = Json::Kind::kList;
    if (!Take('[')) return false;
    if (Take(']')) return true;
    do {
      if (!Value(into.items.emplace_back(), depth + 1)) return false;
    } while (Take(','));
    return Take(']');
  }
  bool Dict(Json& into, int depth) {
    into.kind = Json::Kind::kDict;
    if (!Take('{')) return false;
    if (Take('}')) return true;
    do {
      std::string& name = into.names.emplace_back();
      Json& value = into.items.emplace_back();
      if (!String(name) || !Take(':') || !Value(value, depth + 1)) return false;
    } while (Take(','));
    return Take('}');
  }

  std::string_view rest_;
};

}  // namespace

const Json* Json::Find(std::string_view name) const {
  for (size_t i = 0; i < names.size(); ++i)
    if (names[i] == name) return &items[i];
  return nullptr;
}

std::optional<double> Json::AsNumber() const {
  if (kind != Kind::kText || text.empty()) return std::nullopt;
  char* end = nullptr;
  double number = std::strtod(text.c_str(), &end);
  if (end != text.c_str() + text.size()) return std::nullopt;
  return number;
}

std::optional<std::vector<int64_t>> Json::AsInts() const {
  if (kind != Kind::kList) return std::nullopt;
  std::vector<int64_t> all;
  for (const Json& item : items) {
    std::optional<double> number = item.AsNumber();
    if (!number || !(*number >= -1e15 && *number <= 1e15)) return std::nullopt;
    all.push_back(static_cast<int64_t>(*number));
  }
  return all;
}

std::optional<Json> ParseJson(std::string_view text) {
  Json json;
  JsonParser parser(text);
  if (!parser.Value(json, 0) || !parser.AtEnd()) return std::nullopt;
  return json;
}

}  // namespace tokamak
