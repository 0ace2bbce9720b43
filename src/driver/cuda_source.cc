#include "driver/cuda_source.h"

#if TOK_HAVE_CUDA
#include "backend/cuda/cuda_text.h"
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

}  // namespace tokamak
