#pragma once

#include <span>
#include <string_view>

#include "support/result.h"

namespace tokamak {

// A backend that can run programs: cpu, cuda or interp.
struct BackendInfo {
  std::string_view name;
  bool built = false;
  std::string_view why_not;  // set if not built
};

std::span<const BackendInfo> AllBackends();
// An empty name selects the best backend that is built. Returns TK6002 or TK6003 if there is no
// such backend.
Result<const BackendInfo*> FindBackend(std::string_view name);

}  // namespace tokamak
