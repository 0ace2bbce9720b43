#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/convolution.h"

// Products of matrices through OpenBLAS, which is opened when it is first asked for. Every call is
// of one thread, on a block that follows from the shape alone: threads share out blocks, so that
// values do not depend on how many there are.

namespace tokamak {

enum class MatrixType : uint8_t { kF32, kF64, kC64, kC128 };
size_t BytesOf(MatrixType type);

// result(i, j) = sum over p of lhs(i, p) * rhs(p, j), for each of a batch. The results are dense,
// row-major, one after the other.
struct MatrixProduct {
  // Distances between neighbours, in elements. One of the two is 1, unless the operand is a vector
  // (m or n is 1).
  struct Operand {
    int64_t row = 0, column = 0;
  };
  // A dimension of the batch: how many, and how far apart in each operand.
  struct Batch {
    int64_t count = 1, lhs = 0, rhs = 0;
  };

  MatrixType type{};
  int64_t m = 0, n = 0, k = 0;
  Operand lhs, rhs;
  std::vector<Batch> batch = {};  // the outermost first

  int64_t BatchCount() const;
  bool IsVector() const { return m == 1 || n == 1; }
};

// "f32 128 x 64 x 32", "f64 8 times 2 x 3 x 4, lhs transposed".
std::string ToString(const MatrixProduct& product);

// How a product is cut. Depends on its shape alone.
struct ProductBlocks {
  int64_t rows = 1, columns = 1;  // of a block
  int64_t down = 0, across = 0;   // blocks of one result
  int64_t count = 0;              // of all
  int64_t grain = 1;              // so many are worth a thread's while
};
ProductBlocks BlocksOf(const MatrixProduct& product);

// A product that is ready to run; or, on a GPU, a convolution that takes its place.
struct ProductCall {
  MatrixProduct product;
  ProductBlocks blocks;
  std::optional<Convolution> convolution = std::nullopt;
};

// "f32 128 x 64 x 32 in 4 blocks"
std::string ToString(const ProductCall& call);

// Whether OpenBLAS was found: where TOKAMAK_BLAS says ("off": nowhere), else the machine's. Its own
// threads are switched off; one that was built without threads computes one block at a time, since
// it takes no calls side by side.
bool HasMatrixLibrary();
// The file that it was opened from; "" when there is none.
const char* MatrixLibraryName();

struct ProductArrays {
  const void *lhs = nullptr, *rhs = nullptr;
  void* result = nullptr;
};
// Computes blocks begin .. end - 1. Only with a library. Leaves out what is left once `stop` is
// true (may be null).
void RunProduct(const ProductCall& call, const ProductArrays& arrays, int64_t begin, int64_t end,
                const std::atomic<bool>* stop);

}  // namespace tokamak
