#include "driver/cuda_source.h"

#if TOK_HAVE_CUDA
#include "backend/cuda/cuda_text.h"
#include "backend/cuda/launch_source.h"
#include "driver/device_loops.h"
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

Result<std::string> CudaTextOfPack(const std::string& name,
                                   const std::vector<std::pair<const Kernel*, int64_t>>& parts) {
#if TOK_HAVE_CUDA
  std::vector<cuda::CudaPackPart> given;
  for (auto [kernel, teams] : parts) given.push_back({kernel, teams});
  TOK_TRY(cuda::CudaPackSource made, cuda::CudaPackText(name, given));
  return std::move(made.source.text);
#else
  return MakeError(ErrorCode::kBackendNotBuilt, "pack " + name + " of " +
                                                    std::to_string(parts.size()) +
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
