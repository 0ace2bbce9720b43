// Library calls on a GPU of the driver.

#include "backend/cuda/driver_calls.h"

#include "backend/cuda/custom_kernel.h"
#include "backend/cuda/driver_gpu.h"
#include "backend/cuda/loaded_code.h"

namespace tokamak::cuda {

Result<std::shared_ptr<const CallCode>> DriverGpu::LoadCall(const DeviceCall& call) {
  TOK_RETURN_IF_ERROR(Enter());
  std::lock_guard<std::mutex> lock(call_mutex_);
  TOK_TRY(PreparedCall prepared,
          std::visit(
              [&](const auto& of) -> Result<PreparedCall> {
                if constexpr (std::is_same_v<decltype(of), const FourierShape&>) {
                  return PrepareFourier(of, *this);
                } else if constexpr (std::is_same_v<decltype(of), const CustomKernelCall&>) {
                  return PrepareCustomKernel(of, *this);
                } else {
                  return PrepareMatrices(of, *this);
                }
              },
              call));
  return std::shared_ptr<const CallCode>(std::move(prepared));
}

Status DriverGpu::Call(const CallCode& code, std::span<void* const> arrays) {
  TOK_RETURN_IF_ERROR(Enter());
  std::lock_guard<std::mutex> lock(call_mutex_);
  return static_cast<const DriverCall&>(code).Run(arrays, *this);
}

Result<CallDevice::Function> DriverGpu::Kernel(CallKernel kernel, MatrixElement element) {
  CudaSource source = CallKernelText(kernel, element);
  std::shared_ptr<const LaunchCode>& known = call_kernels_[source.name];
  if (known == nullptr) {
    TOK_TRY(std::vector<KernelImage> images, MakeImages({&source, 1}, OptionsOfImages()));
    TOK_TRY(std::shared_ptr<const LoadedModule> module, LoadModule(images[0].cubin));
    LaunchSource launch;
    launch.source = source;
    TOK_TRY(known, MakeCode(launch, source.name, std::move(module)));
  }
  const auto& code = static_cast<const LoadedCode&>(*known);
  return Function{code.function, code.threads};
}

Result<std::shared_ptr<const LaunchCode>> DriverGpu::CustomKernel(const CudaSource& source) {
  ImageOptions options = OptionsOfImages();
  TOK_TRY(std::string cubin, CompileCustomKernel(source, options));
  TOK_TRY(std::shared_ptr<const LoadedModule> module,
          LoadModule(std::make_shared<const std::string>(std::move(cubin))));
  LaunchSource launch;
  launch.source = source;
  return MakeCode(launch, source.name, std::move(module));
}

Status DriverGpu::LaunchKernel(const Function& function, const Grid& grid,
                               std::span<void* const> parameters) {
  auto count = [](int64_t size) { return static_cast<unsigned>(size); };
  int result = api_.launch(function.handle, count(grid.x), count(grid.y), count(grid.z),
                           count(function.threads[0]), count(function.threads[1]),
                           count(function.threads[2]), static_cast<unsigned>(grid.shared_bytes),
                           stream_, const_cast<void**>(parameters.data()), nullptr);
  return Check(result, "a kernel beside a library's call");
}

}  // namespace tokamak::cuda
