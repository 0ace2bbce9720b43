#pragma once

#include <array>
#include <vector>

#include "backend/cuda/driver_calls.h"

// Bindings of cuSOLVER and cuBLAS. Their matrices are column-major: our row-major matrices are
// passed as their transposes.

namespace tokamak::cuda {

struct Solver {
  // Loaded on first use, once per process; work goes to the stream of the first device that opened
  // it. TK4201, TK4203.
  static Result<const Solver*> Open(CallDevice& device);

  // One function per element type: f32, f64, c64, c128. The first parameter is the library handle,
  // as declared in cusolverDn.h and cublas_v2.h of CUDA 12 and 13. 0 is success; `info` is in
  // device memory.
  template <typename... Parameters>
  using Routine = std::array<int (*)(Handle, Parameters...), 4>;
  Routine<int, int, void*, int, int*> potrf_size{};
  Routine<int, int, void*, int, void*, int, int*> potrf{};
  Routine<int, int, void**, int, int*, int> potrf_batched{};
  Routine<int, int, void*, int, int*> getrf_size{};
  Routine<int, int, void*, int, void*, int*, int*> getrf{};
  Routine<int, void**, int, int*, int*, int> getrf_batched{};  // cuBLAS
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
  // Full vectors, up to 32 x 32.
  Routine<int, int, int, const void*, int, const void*, const void*, int, const void*, int, int*,
          Handle, int>
      gesvdj_batched_size{};
  Routine<int, int, int, void*, int, void*, void*, int, void*, int, void*, int, int*, Handle, int>
      gesvdj_batched{};
  // cuBLAS: side, triangle, operation, diagonal, m, n, factor, a, lda, b, ldb.
  Routine<int, int, int, int, int, int, const void*, const void*, int, void*, int> trsm{};
  Routine<int, int, int, int, int, int, const void*, void**, int, void**, int, int> trsm_batched{};

  Handle solver = nullptr, blas = nullptr;
  Handle eigen_options = nullptr, singular_options = nullptr;  // options of the Jacobi methods

 private:
  static Result<Solver> Load(CallDevice& device);
  Status FindSolver(Handle stream);
  Status FindBlas(Handle stream);
};

inline constexpr int kLower = 0, kUpper = 1;  // CUBLAS_FILL_MODE_LOWER, _UPPER

size_t BytesOf(MatrixElement element);
inline size_t IndexOf(MatrixElement element) {
  return static_cast<size_t>(element);
}
// The error of a library call that returned `status`.
Error LibraryError(const char* library, int status);
// Whether the libraries' int sizes can express such matrices and they are not empty. TK5001.
Status CheckSizes(int64_t rows, int64_t columns, int64_t batch);

// Lays out workspace for a call in chunks aligned to 256 bytes.
class CallMemory {
 public:
  // Reserves bytes and returns their offset. The memory is allocated later, with bytes().
  size_t Add(size_t bytes) {
    size_t at = bytes_;
    bytes_ += (bytes + 255) / 256 * 256;
    return at;
  }
  size_t bytes() const { return bytes_; }

 private:
  size_t bytes_ = 0;
};

// Transposes a batch of row-major matrices. The matrices that it reads are `stride` elements apart;
// 0 if dense.
struct TransposedForm {
  int64_t batch = 1, rows = 0, columns = 0;
  bool conjugates = false;
  int64_t stride = 0;
};
Status Transpose(CallDevice& device, const CallDevice::Function& transpose, void* to,
                 const void* from, const TransposedForm& form);
// Stores the addresses of the matrices of a batch.
Status StoreAddresses(CallDevice& device, const CallDevice::Function& addresses, void* to,
                      const void* first, size_t bytes, int64_t count);

}  // namespace tokamak::cuda
