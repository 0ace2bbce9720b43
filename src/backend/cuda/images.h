#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "backend/cuda/cuda_text.h"
#include "runtime/disk_cache.h"
#include "support/result.h"

// Compiles CUDA sources to cubins, in parallel batches and with the disk cache.
namespace tokamak::cuda {

// A cubin and the name of the kernel in it.
struct KernelImage {
  std::shared_ptr<const std::string> cubin;  // shared by the kernels of a batch
  std::string function;
};

struct ImageOptions {
  std::string architecture = kHopper;
  std::string driver;          // driver version; part of the cache key
  DiskCache* cache = nullptr;  // null: no cache
  bool ask_cache = true;       // false: do not trust cached entries
};

// Machine code of the sources. Names must differ unless the texts are equal; each text is compiled
// once. Cached cubins are used without loading NVRTC; the rest is compiled in batches, one thread
// per batch. TK4121, TK4122.
Result<std::vector<KernelImage>> MakeImages(std::span<const CudaSource> sources,
                                            const ImageOptions& options);

}  // namespace tokamak::cuda
