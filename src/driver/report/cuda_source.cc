#include "driver/report/cuda_source.h"

#if TOK_HAVE_CUDA
#include "backend/cuda/cuda_text.h"
#include "backend/cuda/launch_source.h"
#include "driver/compile/device_loops.h"
#endif

namespace tokamak {

Result<std::string> CudaTextOf(const Kernel& kernel) {
#if TOK_HAVE_CUDA
  TOK_TRY(cuda::CudaSource source, cuda::CudaText(kernel));
  return std::move(source.text);
#else
  return MakeError(ErrorCode::kBackendNotBuilt,
                   "kernel " + kernel.name + ": this build has no CUDA backend");
#endif
}

Result<std::string> CudaTextOfHorizontal(
    const std::string& name, const std::vector<std::pair<const Kernel*, int64_t>>& entries) {
#if TOK_HAVE_CUDA
  std::vector<cuda::HorizontalKernel> given;
  for (auto [kernel, blocks] : entries) given.push_back({kernel, blocks});
  TOK_TRY(cuda::HorizontalSource made, cuda::HorizontalText(name, given));
  return std::move(made.source.text);
#else
  return MakeError(ErrorCode::kBackendNotBuilt, "horizontally fused launch " + name + " of " +
                                                    std::to_string(entries.size()) +
                                                    " kernels: this build has no CUDA backend");
#endif
}

Result<std::string> CudaTextOfLoop(const RunStep& loop, const LoweredProgram& program) {
#if TOK_HAVE_CUDA
  cuda::LaunchForm form = LoopLaunchOf(loop, program).form;
  TOK_TRY(cuda::LaunchSource made, cuda::SourceOf(form, "loop"));
  return std::move(made.source.text);
#else
  return MakeError(ErrorCode::kBackendNotBuilt, "loop " + program.loops[loop.target]->name() +
                                                    ": this build has no CUDA backend");
#endif
}

}  // namespace tokamak
