#pragma once

#include <array>
#include <memory>
#include <span>

#include "backend/cuda/call_kernels.h"
#include "backend/cuda/driver_api.h"
#include "backend/cuda/gpu.h"
#include "support/result.h"

// Library calls as the driver's device runs them: the interface to the device, and the functions
// that prepare each kind of call.

namespace tokamak::cuda {

// What a call may use of the device.
class CallDevice {
 public:
  // A loaded kernel; never unloaded.
  struct Function {
    Handle handle = nullptr;
    std::array<int, 3> threads{1, 1, 1};
  };
  struct Grid {
    int64_t x = 1, y = 1, z = 1;
    size_t shared_bytes = 0;  // dynamic, per block
  };
  // Compiled and loaded on first use.
  virtual Result<Function> Kernel(CallKernel kernel, MatrixElement element) = 0;
  // A kernel of the user, compiled alone. TK4008, TK4009, TK4122.
  virtual Result<std::shared_ptr<const LaunchCode>> CustomKernel(const CudaSource& source) = 0;
  // `parameters` points to each parameter.
  virtual Status LaunchKernel(const Function& function, const Grid& grid,
                              std::span<void* const> parameters) = 0;
  virtual Gpu& gpu() = 0;
  virtual Handle stream() = 0;

 protected:
  ~CallDevice() = default;
};

// Launches with the parameters passed by value.
template <typename... Parameters>
Status LaunchWith(CallDevice& device, const CallDevice::Function& function,
                  const CallDevice::Grid& grid, Parameters... parameters) {
  std::array<void*, sizeof...(Parameters)> all = {&parameters...};
  return device.LaunchKernel(function, grid, all);
}

// A call on a GPU of the driver. Only one thread at a time may enqueue calls.
class DriverCall : public CallCode {
 public:
  virtual Status Run(std::span<void* const> arrays, CallDevice& device) const = 0;
};
using PreparedCall = std::shared_ptr<const DriverCall>;

// A transform by cuFFT. TK4201, TK4203; TK5001 if cuFFT does not support the form.
Result<PreparedCall> PrepareFourier(const FourierShape& shape, CallDevice& device);
// Matrix routines by cuSOLVER and cuBLAS. The same errors as PrepareFourier.
Result<PreparedCall> PrepareMatrices(const CholeskyCall& call, CallDevice& device);
Result<PreparedCall> PrepareMatrices(const TriangularCall& call, CallDevice& device);
Result<PreparedCall> PrepareMatrices(const FactorCall& call, CallDevice& device);
Result<PreparedCall> PrepareMatrices(const PermutationCall& call, CallDevice& device);
// A kernel of the user (custom_kernel.h).
Result<PreparedCall> PrepareCustomKernel(const CustomKernelCall& call, CallDevice& device);

}  // namespace tokamak::cuda
