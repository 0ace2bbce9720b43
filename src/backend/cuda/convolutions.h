#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "backend/cuda/driver_api.h"
#include "backend/cuda/gpu.h"
#include "support/result.h"

// Convolutions by cuDNN's graph API.
namespace tokamak::cuda {

// cuDNN 9, loaded on first use.
class Cudnn {
 public:
  // Returns TK4201 with the reason if it is missing or too old.
  static Result<Cudnn*> Open();

  // Selects a plan: the first one offered by the library's heuristics that is deterministic and
  // needs at most kWorkspace bytes of workspace. Equal convolutions share a plan. Returns TK4203 if
  // there is none.
  Result<std::shared_ptr<const ProductCode>> Prepare(const Convolution& convolution);
  // Enqueues it on a stream.
  Status Run(const ProductCode& code, const ProductArrays& arrays, void* workspace, Handle stream);
  static size_t WorkspaceOf(const ProductCode& code);

  // Bytes. Chosen; no measurement on record (docs/cuda.md states the limit).
  static constexpr size_t kWorkspace = size_t{512} << 20;

 private:
  struct Functions;
  class Descriptor;
  class Code;
  static Result<Cudnn*> Load();
  Result<std::shared_ptr<const ProductCode>> Make(const Convolution& convolution) const;
  Result<Descriptor> GraphOf(const Convolution& convolution, std::vector<Descriptor>& parts) const;
  bool IsFit(const Descriptor& choice, bool tensor_cores) const;

  const Functions* functions_ = nullptr;
  Handle handle_ = nullptr, stream_ = nullptr;
  std::mutex mutex_;  // guards the handle, which allows one call at a time, and made_
  std::unordered_map<std::string, std::shared_ptr<const ProductCode>> made_;  // null if rejected
};

}  // namespace tokamak::cuda
