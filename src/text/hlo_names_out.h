#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

namespace tokamak {

// Generates unique names that are valid in HLO text: "arg0", "v.3" for "%3", "add.1" for the second
// add.
class HloNamer {
 public:
  // `wanted` may be any text; `fallback` is used if it is empty.
  std::string Unique(std::string_view wanted, std::string_view fallback);

 private:
  std::unordered_set<std::string> used_names_;
  std::unordered_map<std::string, int> next_;  // number to try for a name
};

// Whether XLA's parser would read the name without '%' as something else.
bool IsHloKeyword(std::string_view name);

}  // namespace tokamak
