#pragma once

#include <string>

#include "backend/cuda/cuda_text.h"
#include "runtime/triangular.h"

// Handwritten CUDA C++ kernels that library calls (cuFFT, cuSOLVER, cuBLAS) need around them:
// scaled copies, batched transposes, pointer tables, NaN checks, small QR factorizations.

namespace tokamak::cuda {

enum class CallKernel : uint8_t {
  // (to, from, count, factor): scaled copy. f32 and f64 only.
  kScale,
  // (to, from, count, factor, last, outer, inner, even): scaled copy of the spectra of real arrays,
  // outer x inner x last complex numbers each. Some bins are their own mirror image: the first bin
  // of a line, and the last if the real line is even. They keep only their Hermitian part, because
  // the spectrum of a real array has nothing else there.
  kSpectrum,
  // (to, from, rows, columns, stride, conjugates): transposes row-major matrices. blockIdx.z
  // selects the matrix, a block handles a 32 x 32 tile. The matrices of `from` are `stride`
  // elements apart. Complex elements are conjugated if `conjugates` is not 0.
  kTranspose,
  // (to, first, bytes, count): addresses of `count` arrays that are `bytes` apart.
  kAddresses,
  // (info, factor, n): checks a Cholesky factor; one block per matrix.
  kCheckCholesky,
  // (factor, info, n, lower): clears the other triangle, or fills the matrix with NaN if `info`
  // reports failure; blockIdx.z selects the matrix.
  kFinish,
  // (info, matrices, rows, columns, triangle): sets info to 1 if an element is NaN or infinite.
  // Looks at the whole matrix (0), or at its lower (1) or upper (2) triangle; one block per matrix.
  kFinite,
  // (matrices, flags, rows, columns): fills the matrices with a nonzero flag with NaN; one block
  // per matrix.
  kFillNan,
  // (permutations, pivots, swaps, rows): converts a sequence of row swaps (pivots count from 0) to
  // a permutation; one block per matrix.
  kPermutation,
  // kSmallQr (factors, taus, matrices, rows, columns): LAPACK's geqrf of matrices that fit shared
  // memory; one block per matrix. kSmallReflectors (to, factors, taus, rows, columns, reflectors):
  // LAPACK's orgqr of such matrices.
  kSmallQr,
  kSmallReflectors,
};
inline constexpr size_t kCallKernels = static_cast<size_t>(CallKernel::kSmallReflectors) + 1;
// Threads per block of most kernels and of the small QR kernels; a transpose block has
// kTransposeTile x kTransposeRows threads and moves a kTransposeTile x kTransposeTile tile. A tile
// row is one warp wide; the others are chosen; no measurement on record.
inline constexpr int kCallThreads = 256, kSmallThreads = 128, kTransposeTile = 32,
                     kTransposeRows = 8;

CudaSource CallKernelText(CallKernel kernel, MatrixElement element);

}  // namespace tokamak::cuda
