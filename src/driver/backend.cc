#include "driver/backend.h"

#include <string>

namespace tokamak {
namespace {

// In order of preference.
constexpr BackendInfo kBackends[] = {
#if TOK_HAVE_CUDA
    {"cuda", true, ""},
#else
    {"cuda", false, "it was built without CUDA"},
#endif
#if TOK_HAVE_LLVM
    {"cpu", true, ""},
#else
    {"cpu", false, "it was built without LLVM"},
#endif
    {"interp", true, ""},
    // CPU and GPU kernels in the checked simulator, for tests.
    {"sim", true, ""},
    {"sim-gpu", true, ""},
#if TOK_HAVE_CUDA
    // The CUDA backend on a simulated device.
    {"sim-cuda", true, ""},
#endif
};
#if TOK_HAVE_LLVM
constexpr std::string_view kStandard = "cpu";
#else
constexpr std::string_view kStandard = "interp";
#endif

}  // namespace

std::span<const BackendInfo> AllBackends() {
  return kBackends;
}

Result<const BackendInfo*> FindBackend(std::string_view name) {
  if (name.empty()) name = kStandard;
  std::string known;
  for (const BackendInfo& backend : kBackends) {
    if (backend.name == name) {
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
