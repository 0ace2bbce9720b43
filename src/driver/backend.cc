#include "driver/backend.h"

#include <string>

namespace tokamak {
namespace {

// Best first.
constexpr BackendInfo kBackends[] = {
    {"cuda", false, "it is not written yet"},
    {"cpu", false, "it is not written yet"},
    {"interp", true, ""},
};

}  // namespace

std::span<const BackendInfo> AllBackends() {
  return kBackends;
}

Result<const BackendInfo*> FindBackend(std::string_view name) {
  std::string known;
  for (const BackendInfo& backend : kBackends) {
    if (name.empty() ? backend.built : backend.name == name) {
      if (backend.built) return &backend;
      return MakeError(ErrorCode::kBackendNotBuilt,
                       "backend '" + std::string(name) +
                           "' is not part of this build: " + std::string(backend.why_not));
    }
    known += (known.empty() ? "" : ", ") + std::string(backend.name);
  }
  return MakeError(ErrorCode::kUnknownBackend,
                   "backend '" + std::string(name) + "' is none of " + known);
}

}  // namespace tokamak
