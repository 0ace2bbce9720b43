#include "backend/cuda/driver_api.h"

#include <dlfcn.h>

#include <fmt/format.h>

namespace tokamak::cuda {
namespace {

// The oldest supported driver: CUDA 12.0.
constexpr int kLeastVersion = 12000;

Error NoDriver(const std::string& why) {
  return MakeError(ErrorCode::kNoDriver, "cuda: " + why);
}

Result<DriverApi> Load() {
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* why = dlerror();
    return NoDriver(
        fmt::format("the driver of NVIDIA GPUs is not there: {}", why == nullptr ? "?" : why));
  }
  DriverApi api;
#define TOK_DRIVER(name, symbol, parameters)                              \
  api.name = reinterpret_cast<int(*) parameters>(dlsym(library, symbol)); \
  if (api.name == nullptr)                                                \
    return NoDriver("the driver lacks " symbol ", which drivers have since CUDA 12.0");
  TOK_DRIVER_FUNCTIONS(TOK_DRIVER)
#undef TOK_DRIVER
  if (int result = api.version(&api.supports); result != 0)
    return NoDriver("the driver does not tell its version: " + api.TextOf(result));
  if (api.supports < kLeastVersion)
    return NoDriver(fmt::format("the driver is of CUDA {}.{}, needed is one of CUDA 12.0 or later",
                                api.supports / 1000, api.supports % 1000 / 10));
  if (int result = api.init(0); result != 0)
    return MakeError(ErrorCode::kNoDevice, "cuda: there is no GPU to use: " + api.TextOf(result));
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
