#include "driver/device_libraries.h"

#include "fusion/contraction.h"
#include "fusion/expand_convolutions.h"
#include "fusion/expand_ops.h"
#include "fusion/library_convolutions.h"
#include "fusion/split_convolutions.h"
#include "lower/library_calls.h"

namespace tokamak {
namespace {

class LibraryOfGpu final : public ConvolutionLibrary {
 public:
  explicit LibraryOfGpu(cuda::Gpu& gpu) : gpu_(gpu) {}
  std::string WhyNot(const LibraryConvolution& convolution) override {
    if (!gpu_.HasProducts()) return "cuBLASLt is not there";
    auto loaded = gpu_.LoadConvolution(ConvolutionFrom(convolution));
    return loaded.ok() ? "" : loaded.error().message;
  }

 private:
  cuda::Gpu& gpu_;
};

}  // namespace

void PlanLibraries(cuda::Gpu& gpu, Module& module, Machine& machine, DecisionLog& log) {
  ExpandOps(module, log);
  LibraryOfGpu library(gpu);
  machine.matrix_library = PrepareConvolutions(module, library, log);
  SplitConvolutions(module, machine, log);
  ExpandConvolutions(module, machine, log);
  machine.matrix_library =
      machine.matrix_library || (HasContractions(module, machine) && gpu.HasProducts());
}

}  // namespace tokamak
