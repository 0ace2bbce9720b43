#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "backend/cuda/driver_api.h"
#include "backend/cuda/gpu.h"
#include "support/result.h"

// Matrix products by cuBLASLt.
namespace tokamak::cuda {

// A product in the terms of cuBLASLt: matrices are column-major, so lhs and rhs are swapped.
struct LtProduct {
  struct Side {
    bool is_transposed = false;
    int64_t rows = 0, columns = 0, leading = 0;  // as stored in memory
    int64_t batch_stride = 0;
  };
  Side first, second, result;  // first is our rhs, second our lhs
  int64_t batch = 1;
  // Batch dimensions that cannot be expressed by one stride: one call per index.
  std::vector<MatrixProduct::Batch> outer;
};
LtProduct LtProductOf(const MatrixProduct& product);

// cuBLASLt, loaded on first use.
class CublasLt {
 public:
  // TK4201, TK4203.
  static Result<const CublasLt*> Open();

  // Selects an algorithm that needs at most kWorkspace bytes of workspace.
  Result<std::shared_ptr<const ProductCode>> Prepare(const MatrixProduct& product,
                                                     const ProductKind& kind) const;
  // Enqueues it on a stream.
  Status Run(const ProductCode& code, const ProductArrays& arrays, void* workspace,
             Handle stream) const;
  static size_t WorkspaceOf(const ProductCode& code);

  // Bytes. Chosen; no measurement on record.
  static constexpr size_t kWorkspace = size_t{32} << 20;

 private:
  struct Functions;
  class Code;
  static Result<CublasLt> Load();

  const Functions* functions_ = nullptr;
  Handle handle_ = nullptr;
};

}  // namespace tokamak::cuda
