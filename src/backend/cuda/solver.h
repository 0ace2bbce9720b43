#pragma once

#include <array>
#include <vector>

#include "backend/cuda/driver_calls.h"

// cuSOLVER and cuBLAS, for files that ask them for something. Their matrices are by columns: ours,
// row-major, are those transposed.

namespace tokamak::cuda {

struct Solver {
  // Opened when it is first asked for; work goes to the stream of the device that asked first. The
  // process has one. TK4201, TK4203.
  static Result<const Solver*> Open(CallDevice& device);

  // Of f32, f64, c64, c128. Handles come first, as cusolverDn.h and cublas_v2.h of CUDA 12 and 13
  // declare them; 0 is success, `info` is in the device's memory.
  template <typename... Parameters>
  using Routine = std::array<int (*)(Handle, Parameters...), 4>;
  Routine<int, int, void*, int, int*> potrf_size{};
  Routine<int, int, void*, int, void*, int, int*> potrf{};
  Routine<int, int, void**, int, int*, int> potrf_batched{};
  Routine<int, int, void*, int, int*> getrf_size{};
  Routine<int, int, void*, int, void*, int*, int*> getrf{};
  Routine<int, void**, int, int*, int*, int> getrf_batched{};  // of cuBLAS
  Routine<int, int, void*, int, int*> geqrf_size{};
  Routine<int, int, void*, int, void*, void*, int, int*> geqrf{};
  Routine<int, int, int, const void*, int, const void*, int*> orgqr_size{};
  Routine<int, int, int, void*, int, const void*, void*, int, int*> orgqr{};
  Routine<int, int, int, const void*, int, const void*, int*> syevd_size{};
  Routine<int, int, int, void*, int, void*, void*, int, int*> syevd{};
  Routine<int, int, int, const void*, int, const void*, int*, Handle, int> syevj_batched_size{};
  Routine<int, int, int, void*, int, void*, void*, int, int*, Handle, int> syevj_batched{};
  Routine<int, int, int, int, const void*, int, const void*, const void*, int, const void*, int,
          int*, Handle>
      gesvdj_size{};
  Routine<int, int, int, int, void*, int, void*, void*, int, void*, int, void*, int, int*, Handle>
      gesvdj{};
  // Full vectors, of up to 32 x 32.
  Routine<int, int, int, const void*, int, const void*, const void*, int, const void*, int, int*,
          Handle, int>
      gesvdj_batched_size{};
  Routine<int, int, int, void*, int, void*, void*, int, void*, int, void*, int, int*, Handle, int>
      gesvdj_batched{};
  // Of cuBLAS: side, triangle, operation, diagonal, m, n, factor, a, lda, b, ldb.
  Routine<int, int, int, int, int, int, const void*, const void*, int, void*, int> trsm{};
  Routine<int, int, int, int, int, int, const void*, void**, int, void**, int, int> trsm_batched{};

  Handle solver = nullptr, blas = nullptr;
  Handle eigen_options = nullptr, singular_options = nullptr;  // of Jacobi's rotations

 private:
  static Result<Solver> Load(CallDevice& device);
  Status FindSolver(Handle stream);
  Status FindBlas(Handle stream);
};

inline constexpr int kLower = 0, kUpper = 1;  // triangles

size_t BytesOf(MatrixElement element);
inline size_t IndexOf(MatrixElement element) {
  return static_cast<size_t>(element);
}
// A step of a library's call, when it was refused.
Error RefusedBy(const char* library, int status);
// Whether the libraries count such matrices, and there is anything in them. TK5001.
Status CheckSizes(int64_t rows, int64_t columns, int64_t batch);

// Memory for a call, in parts that are aligned to 256 bytes.
class CallMemory {
 public:
  // Says what is needed, before Take; gives its place.
  size_t Add(size_t bytes) {
    size_t at = bytes_;
    bytes_ += (bytes + 255) / 256 * 256;
    return at;
  }
  size_t bytes() const { return bytes_; }

 private:
  size_t bytes_ = 0;
};

// Turns a batch of row-major matrices over. Those that it reads are `apart` numbers from each
// other; 0: dense.
struct Turned {
  int64_t batch = 1, rows = 0, columns = 0;
  bool conjugates = false;
  int64_t apart = 0;
};
Status Transpose(CallDevice& device, const CallDevice::Function& transpose, void* to,
                 const void* from, const Turned& form);
// Addresses of the matrices of a batch.
Status StoreAddresses(CallDevice& device, const CallDevice::Function& addresses, void* to,
                      const void* first, size_t bytes, int64_t count);

}  // namespace tokamak::cuda
