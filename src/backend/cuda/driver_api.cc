#include "backend/cuda/driver_api.h"

#include <dlfcn.h>

#include <fmt/format.h>

namespace tokamak::cuda {
namespace {

// The oldest supported driver: CUDA 12.0.
constexpr int kLeastVersion = 12000;

Error NoDriver(const std::string& why) {
  Error error = MakeError(ErrorCode::kNoDriver, "cuda: " + why);
  error.notes.push_back(
      "`nvidia-smi` must list a GPU; without one, use the backend cpu (--backend cpu, or "
      "TOKAMAK_DEVICE=cpu for JAX)");
  return error;
}

Result<DriverApi> Load() {
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* why = dlerror();
    return NoDriver(fmt::format("there is no NVIDIA driver: {}", why == nullptr ? "?" : why));
  }
  DriverApi api;
#define TOK_DRIVER(name, symbol, parameters)                              \
  api.name = reinterpret_cast<int(*) parameters>(dlsym(library, symbol)); \
  if (api.name == nullptr)                                                \
    return NoDriver("the NVIDIA driver lacks " symbol ": CUDA 12.0 or later is needed");
  TOK_DRIVER_FUNCTIONS(TOK_DRIVER)
#undef TOK_DRIVER
  api.encode_tensor_map =
      reinterpret_cast<decltype(api.encode_tensor_map)>(dlsym(library, "cuTensorMapEncodeTiled"));
  if (int result = api.version(&api.supports); result != 0)
    return NoDriver("the NVIDIA driver does not report its version: " + api.TextOf(result));
  if (api.supports < kLeastVersion)
    return NoDriver(
        fmt::format("the NVIDIA driver supports CUDA {}.{}, but 12.0 or later is needed",
                    api.supports / 1000, api.supports % 1000 / 10));
  if (int result = api.init(0); result != 0)
    return MakeError(ErrorCode::kNoDevice, "cuda: no usable GPU: " + api.TextOf(result));
  return api;
}

}  // namespace

Result<const DriverApi*> DriverApi::Open() {
  static const Result<DriverApi> loaded = Load();
  if (!loaded.ok()) return loaded.error();
  return &loaded.value();
}

std::string DriverApi::TextOf(int result) const {
  const char *name = nullptr, *text = nullptr;
  if (error_name(result, &name) != 0 || name == nullptr) return fmt::format("error {}", result);
  if (error_text(result, &text) != 0 || text == nullptr) return name;
  return fmt::format("{}: {}", name, text);
}

}  // namespace tokamak::cuda
