#pragma once

#include <string>

#include "backend/cuda/cuda_text.h"
#include "backend/cuda/images.h"
#include "support/result.h"

namespace tokamak::cuda {

// Compiles a kernel of the user to a cubin, or finds it in the disk cache. TK4008 with NVRTC's
// messages, which name the user's lines; TK4009 if NVRTC takes too long; TK4122.
Result<std::string> CompileCustomKernel(const CudaSource& source, const ImageOptions& options);

}  // namespace tokamak::cuda
