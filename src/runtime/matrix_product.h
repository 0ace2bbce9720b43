#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/convolution.h"

// Matrix products by OpenBLAS, which is loaded on first use. Every call to it is single-threaded
// and computes a block that follows from the shape alone. Blocks are distributed over the threads,
// so results do not depend on the number of threads.

namespace tokamak {

enum class MatrixType : uint8_t { kF32, kF64, kC64, kC128 };
size_t BytesOf(MatrixType type);

// result(i, j) = sum over p of lhs(i, p) * rhs(p, j), for each index of a batch. The results are
// dense, row-major and contiguous.
struct MatrixProduct {
  // Strides in elements. One of the two is 1, unless the operand is a vector (m or n is 1).
  struct Operand {
    int64_t row = 0, column = 0;
  };
  // A batch dimension: its size, and the stride in each operand.
  struct Batch {
    int64_t count = 1, lhs = 0, rhs = 0;
  };

  MatrixType type{};
  int64_t m = 0, n = 0, k = 0;
  Operand lhs, rhs;
  std::vector<Batch> batch = {};  // outermost first

  int64_t BatchCount() const;
  bool IsVector() const { return m == 1 || n == 1; }
};

// "f32 128 x 64 x 32", "f64 8 times 2 x 3 x 4, lhs transposed".
std::string ToString(const MatrixProduct& product);

// How a product is divided into blocks. Depends on its shape alone.
struct ProductBlocks {
  int64_t rows = 1, columns = 1;            // of a block
  int64_t down = 0, columns_of_blocks = 0;  // blocks per result
  int64_t count = 0;                        // in all
  int64_t min_chunk = 1;  // minimum number of blocks that amortizes waking a thread
};
ProductBlocks BlocksOf(const MatrixProduct& product);

// A product that is ready to run or, on a GPU, a convolution that replaces it.
struct ProductCall {
  MatrixProduct product;
  ProductBlocks blocks;
  std::optional<Convolution> convolution = std::nullopt;
};

// "f32 128 x 64 x 32 in 4 blocks"
std::string ToString(const ProductCall& call);

// Whether OpenBLAS was found: at TOKAMAK_BLAS ("off" disables it), else on the system. Its own
// threads are disabled; a build without thread support computes one block at a time, because it
// does not allow concurrent calls.
bool HasMatrixLibrary();

struct ProductArrays {
  const void *lhs = nullptr, *rhs = nullptr;
  void* result = nullptr;
};
// Computes blocks begin .. end - 1. Requires HasMatrixLibrary(). Skips the remaining blocks once
// `stop` (may be null) is true.
void RunProduct(const ProductCall& call, const ProductArrays& arrays, int64_t begin, int64_t end,
                const std::atomic<bool>* stop);

}  // namespace tokamak
