#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "backend/cuda/driver_api.h"
#include "backend/cuda/gpu.h"
#include "support/result.h"

namespace tokamak::cuda {

// A product as cuBLASLt computes it: of matrices by columns, so the sides change places.
struct LtProduct {
  struct Side {
    bool is_transposed = false;
    int64_t rows = 0, columns = 0, leading = 0;  // as it lies in memory
    int64_t batch_stride = 0;
  };
  Side first, second, result;  // first is our rhs, second our lhs
  int64_t batch = 1;
  // Dimensions of the batch that no stride covers: a call each.
  std::vector<MatrixProduct::Batch> outer;
};
LtProduct LtProductOf(const MatrixProduct& product);

// cuBLASLt, opened when it is first asked for.
class CublasLt {
 public:
  // TK4201, TK4203.
  static Result<const CublasLt*> Open();

  // Picks how to compute it. The workspace is what calls may use, of at most kWorkspace bytes.
  Result<std::shared_ptr<const ProductCode>> Prepare(const MatrixProduct& product,
                                                     const ProductKind& kind) const;
  // Asks a stream for it.
  Status Run(const ProductCode& code, const ProductArrays& arrays, void* workspace,
             Handle stream) const;
  static size_t WorkspaceOf(const ProductCode& code);

  static constexpr size_t kWorkspace = size_t{32} << 20;

 private:
  struct Functions;
  class Code;
  static Result<CublasLt> Load();

  const Functions* functions_ = nullptr;
  Handle handle_ = nullptr;
};

}  // namespace tokamak::cuda
