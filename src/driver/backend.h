#pragma once

#include <span>
#include <string_view>

#include "support/result.h"

namespace tokamak {

// What can run a program.
struct BackendInfo {
  std::string_view name;
  bool built = false;
  std::string_view why_not;  // when not built
};

std::span<const BackendInfo> AllBackends();
// "": the best one that is built. TK6002, TK6003.
Result<const BackendInfo*> FindBackend(std::string_view name);

}  // namespace tokamak
