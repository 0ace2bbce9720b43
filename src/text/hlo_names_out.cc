#include "text/hlo_names_out.h"

#include <algorithm>

#include "ir/element_type.h"
#include "text/hlo_cursor.h"

namespace tokamak {
namespace {

std::string Sanitise(std::string_view name) {
  std::string text;
  text.reserve(name.size() + 1);
  for (char c : name) text += HloCursor::IsWordChar(c) ? c : '_';
  char first = text.empty() ? '\0' : text[0];
  bool starts_well =
      first == '_' || (first >= 'a' && first <= 'z') || (first >= 'A' && first <= 'Z');
  return starts_well ? text : "v" + text;
}

}  // namespace

std::string HloNamer::Unique(std::string_view wanted, std::string_view fallback) {
  std::string name = Sanitise(wanted.empty() ? fallback : wanted);
  if (used_names_.insert(name).second) return name;
  int& number = next_[name];
  for (;;) {
    std::string numbered = name + "." + std::to_string(++number);
    if (used_names_.insert(numbered).second) return numbered;
  }
}

bool IsHloKeyword(std::string_view name) {
  static constexpr std::string_view kWords[] = {"HloModule",
                                                "ENTRY",
                                                "ROOT",
                                                "true",
                                                "false",
                                                "maximal",
                                                "manual",
                                                "unknown",
                                                "unreduced",
                                                "replicated",
                                                "last_tile_dim_replicate",
                                                "last_tile_dims",
                                                "shard_as",
                                                "shard_like",
                                                "inf",
                                                "nan",
                                                "sparse",
                                                "token",
                                                "opaque",

                                                "FileNames",
                                                "FunctionNames",
                                                "FileLocations",
                                                "StackFrames",
                                                "b",
                                                "future"};
  if (std::find(std::begin(kWords), std::end(kWords), name) != std::end(kWords)) return true;
  return ElementTypeFromHlo(name).has_value();
}

}  // namespace tokamak
