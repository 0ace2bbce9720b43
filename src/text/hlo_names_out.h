#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

namespace tokamak {

// Makes names that HLO text can hold, each different from the last: "arg0",
// "v.3" for "%3", "add.1" for the second add.
class HloNamer {
 public:
  // `wanted` may be anything; `fallback` is used where it is empty.
  std::string Unique(std::string_view wanted, std::string_view fallback);

 private:
  std::unordered_set<std::string> taken_;
  std::unordered_map<std::string, int> next_;  // number to try for a name
};

// Whether XLA's reader would take the name for something else without '%'.
bool IsHloKeyword(std::string_view name);

}  // namespace tokamak
