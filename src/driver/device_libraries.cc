#include "driver/device_libraries.h"

#include "gen/library/contraction.h"
#include "gen/library/libraries.h"
#include "lower/library_calls.h"
#include "passes/passes.h"

namespace tokamak {
namespace {

class GpuLibraries final : public TargetLibraries {
 public:
  explicit GpuLibraries(cuda::Gpu& gpu) : gpu_(gpu) {}

 private:
  bool FindProducts() override { return gpu_.HasProducts(); }
  std::string FindConvolution(const LibraryConvolution& convolution) override {
    if (!gpu_.HasProducts()) return "cuBLASLt is not there";
    auto loaded = gpu_.LoadConvolution(ConvolutionFrom(convolution));
    return loaded.ok() ? "" : loaded.error().message;
  }

  cuda::Gpu& gpu_;
};

}  // namespace

void PlanLibraries(cuda::Gpu& gpu, Module& module, Machine& machine, DecisionLog& log) {
  GpuLibraries libraries(gpu);
  PassContext context(log, {}, {}, TargetOf(machine, &libraries));
  PipelineOptions options;
  options.stop_after = Pass::kExpandConvolutions;
  auto runs = RunPasses(module, kGpuPipeline, context, options);
  TOK_CHECK(runs.ok(), "the first passes for GPUs");
  machine.matrix_library =
      libraries.are_used() || (HasContractions(module, machine) && libraries.HasProducts());
}

}  // namespace tokamak
