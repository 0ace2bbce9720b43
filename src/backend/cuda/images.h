#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "backend/cuda/cuda_text.h"
#include "runtime/disk_cache.h"
#include "support/result.h"

namespace tokamak::cuda {

// Machine code that holds a kernel, and the kernel's name there.
struct KernelImage {
  std::shared_ptr<const std::string> cubin;  // of several kernels: the same for all of them
  std::string function;
};

struct ImageOptions {
  std::string architecture = "sm_90";
  std::string driver;          // part of the key of the cache
  DiskCache* cache = nullptr;  // null: none
  bool ask_cache = true;       // false: what it has is not to be trusted
};

// Machine code of sources whose names all differ unless the texts are equal; each text is compiled
// once. What the cache has comes from there, without NVRTC being opened; the rest is compiled in
// batches, a batch a thread. TK4121, TK4122.
Result<std::vector<KernelImage>> MakeImages(std::span<const CudaSource> sources,
                                            const ImageOptions& options);

}  // namespace tokamak::cuda
