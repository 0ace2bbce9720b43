#pragma once

#include <array>
#include <cstdint>
#include <variant>

#include "backend/cuda/cuda_text.h"
#include "runtime/fft.h"
#include "runtime/triangular.h"

// Library calls that a GPU can run instead of the host: FFTs, factorizations, triangular solves.
namespace tokamak::cuda {

// A LAPACK routine on a batch of row-major matrices, with the operands and results of JAX's custom
// calls.
struct FactorCall {
  enum class Routine : uint8_t {
    kLu,          // getrf: factors, pivots from 1, info
    kQr,          // geqrf: reflectors and R, taus
    kReflectors,  // orgqr: the orthogonal matrix of the reflectors and taus
    kEigen,       // syevd: vectors, values, info
    kSingular,    // gesdd, gesvd: overwritten input, values, left and right vectors, info
  };
  // Singular vectors to compute: none, one per singular value, or all.
  enum class Vectors : uint8_t { kNone, kSome, kAll };
  Routine routine{};
  MatrixElement element{};
  int64_t batch = 1, rows = 0, columns = 0;
  int64_t reflectors = 0;  // of orgqr
  bool lower = true;       // eigen: the triangle that is read
  Vectors vectors = Vectors::kAll;
};

// Converts a sequence of s32 row swaps, counted from 0, to a permutation of the rows.
struct PermutationCall {
  int64_t batch = 1, swaps = 0, rows = 0;
};

// A kernel of the user (docs/custom_kernels.md). Its parameters are the arrays of the step.
struct CustomKernelCall {
  CudaSource source;
  std::array<int64_t, 3> grid{1, 1, 1};
};

// A call that a library of the device may run instead of the host. Arrays are those of the step:
// operands, then results.
using DeviceCall = std::variant<FourierShape, CholeskyCall, TriangularCall, FactorCall,
                                PermutationCall, CustomKernelCall>;

// A call that is ready to be enqueued.
class CallCode {
 public:
  virtual ~CallCode() = default;
  // Whether the enqueuing thread blocks until the call is done.
  virtual bool waits() const { return false; }
};

}  // namespace tokamak::cuda
