#include "driver/compile/devices.h"

#include "driver/compile/backend.h"
#if TOK_HAVE_CUDA
#include "backend/cuda/gpu.h"
#endif

namespace tokamak {

Result<Device*> DeviceOf(std::string_view name) {
  TOK_TRY(const BackendInfo* backend, FindBackend(name));
#if TOK_HAVE_CUDA
  if (backend->name == "cuda") {
    TOK_TRY(cuda::Gpu * gpu, cuda::OpenGpu());
    return gpu;
  }
  if (backend->name == "sim-cuda") return &cuda::SimulatedGpu();
#endif
  return nullptr;
}

}  // namespace tokamak
