// Kernels of the user on a GPU: compiled one by one, because their texts may include headers and
// define any names, and launched with the given geometry.

#include "backend/cuda/custom_kernel.h"

#include "backend/cuda/driver_calls.h"
#include "backend/cuda/library_paths.h"
#include "backend/cuda/loaded_code.h"
#include "backend/cuda/nvrtc.h"

namespace tokamak::cuda {
namespace {

constexpr std::string_view kCustomEntry = "custom-cuda";

class CustomLaunch final : public DriverCall {
 public:
  CustomLaunch(std::shared_ptr<const LaunchCode> code, const CustomKernelCall& call)
      : code_(std::move(code)), grid_(call.grid) {
    shared_bytes_ = static_cast<size_t>(call.source.dynamic_bytes);
  }

  Status Run(std::span<void* const> arrays, CallDevice& device) const override {
    const auto& loaded = static_cast<const LoadedCode&>(*code_);
    std::vector<void*> pointers(arrays.begin(), arrays.end()), parameters;
    for (void*& pointer : pointers) parameters.push_back(&pointer);
    CallDevice::Grid grid{
        .x = grid_[0], .y = grid_[1], .z = grid_[2], .shared_bytes = shared_bytes_};
    return device.LaunchKernel({loaded.function, loaded.threads}, grid, parameters);
  }

 private:
  std::shared_ptr<const LaunchCode> code_;
  std::array<int64_t, 3> grid_;
  size_t shared_bytes_ = 0;
};

}  // namespace

Result<std::string> CompileCustomKernel(const CudaSource& source, const ImageOptions& options) {
  CacheKey key;
  key.Add(options.architecture).Add(LibraryIdentity("libnvrtc.so")).Add(source.text);
  for (const std::string& option : source.options) key.Add(option);
  if (options.cache != nullptr && options.ask_cache)
    if (std::optional<std::string> cubin = options.cache->Get(kCustomEntry, key.bytes()))
      return std::move(*cubin);
  TOK_TRY(const Nvrtc* nvrtc, Nvrtc::Open());
  Result<CudaCode> code = nvrtc->Compile(source, options.architecture);
  if (!code.ok()) return std::move(code.error());
  // The name of the function's section, which ends with a zero.
  if (code.value().cubin.find(".text." + source.name + '\0') == std::string::npos)
    return MakeError(ErrorCode::kCustomKernelSource,
                     "kernel '" + source.name + "': its CUDA source has no function TOK_KERNEL(" +
                         source.name + ")");
  if (options.cache != nullptr) options.cache->Put(kCustomEntry, key.bytes(), code.value().cubin);
  return std::move(code.value().cubin);
}

Result<PreparedCall> PrepareCustomKernel(const CustomKernelCall& call, CallDevice& device) {
  TOK_TRY(std::shared_ptr<const LaunchCode> code, device.CustomKernel(call.source));
  return PreparedCall(std::make_shared<CustomLaunch>(std::move(code), call));
}

}  // namespace tokamak::cuda
