#include "driver/compile/target_libraries.h"

#include "backend/cuda/gpu.h"
#include "lower/library_calls.h"
#include "runtime/matrix_product.h"

namespace tokamak {
namespace {

// The libraries of the machine of this process.
class HostLibraries final : public TargetLibraries {
  bool FindMatrixMultiply() override { return HasMatrixLibrary(); }
  std::string FindConvolution(const LibraryConvolution&) override {
    return "no library of this machine computes convolutions";
  }
};

class GpuLibraries final : public TargetLibraries {
 public:
  explicit GpuLibraries(cuda::Gpu& gpu) : gpu_(gpu) {}

 private:
  bool FindMatrixMultiply() override { return gpu_.HasMatrixMultiply(); }
  std::string FindConvolution(const LibraryConvolution& convolution) override {
    if (!gpu_.HasMatrixMultiply()) return "cuBLASLt is not available";
    auto loaded = gpu_.LoadConvolution(ConvolutionFrom(convolution));
    return loaded.ok() ? "" : loaded.error().message;
  }

  cuda::Gpu& gpu_;
};

}  // namespace

std::unique_ptr<TargetLibraries> LibrariesOf(const Target& target) {
  if (target.libraries == LibraryUse::kNone) return nullptr;
  if (target.libraries == LibraryUse::kAll)
    return std::make_unique<AssumedLibraries>(target.is_gpu());
  if (target.device != nullptr)
    return std::make_unique<GpuLibraries>(static_cast<cuda::Gpu&>(*target.device));
  return std::make_unique<HostLibraries>();
}

}  // namespace tokamak
