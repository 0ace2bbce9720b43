#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "backend/cuda/driver_api.h"
#include "backend/cuda/gpu.h"
#include "support/result.h"

namespace tokamak::cuda {

// cuDNN 9, opened when it is first asked for.
class Cudnn {
 public:
  // TK4201 with the reason, also when it is too old.
  static Result<Cudnn*> Open();

  // Picks how to compute it: the first that the library's heuristics offer of those whose values
  // depend on nothing but the operands, and whose workspace is at most kWorkspace. Equal
  // convolutions share it. TK4203 when there is none.
  Result<std::shared_ptr<const ProductCode>> Prepare(const Convolution& convolution);
  // Asks a stream for it.
  Status Run(const ProductCode& code, const ProductArrays& arrays, void* workspace, Handle stream);
  static size_t WorkspaceOf(const ProductCode& code);

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
  std::mutex mutex_;  // of the handle, which takes one call at a time, and of what was made
  std::unordered_map<std::string, std::shared_ptr<const ProductCode>> made_;  // null: refused
};

}  // namespace tokamak::cuda
