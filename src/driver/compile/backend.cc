#include "driver/compile/backend.h"

#include <string>
#include <vector>

#include "support/near_names.h"

namespace tokamak {
namespace {

// In order of preference.
constexpr BackendInfo kBackends[] = {
#if TOK_HAVE_CUDA
    {"cuda", true, ""},
#else
    {"cuda", false, "Tokamak was built without CUDA"},
#endif
#if TOK_HAVE_LLVM
    {"cpu", true, ""},
#else
    {"cpu", false, "Tokamak was built without LLVM"},
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
  for (const BackendInfo& backend : kBackends) {
    if (backend.name == name) {
      if (backend.built) return &backend;
      return MakeError(ErrorCode::kBackendNotBuilt,
                       "backend '" + std::string(name) +
                           "' is not part of this build: " + std::string(backend.why_not));
    }
  }
  std::vector<std::string_view> names;
  std::string simulated;
  for (const BackendInfo& backend : kBackends) {
    if (!backend.name.starts_with("sim")) {
      names.push_back(backend.name);
    } else {
      simulated += (simulated.empty() ? "" : ", ") + std::string(backend.name);
    }
  }
  Error error = MakeError(ErrorCode::kUnknownBackend, "backend " + NoneOf(name, names));
  error.notes.push_back("cuda is an NVIDIA GPU; simulators for tests: " + simulated);
  return error;
}

}  // namespace tokamak
