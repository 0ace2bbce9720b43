#pragma once

#include <string>

#include "backend/cuda/cuda_text.h"
#include "runtime/triangular.h"

// What calls of libraries need besides: copies that scale, matrices turned over, and the like, in
// CUDA C++ as we wrote it.

namespace tokamak::cuda {

enum class CallKernel : uint8_t {
  // (to, from, numbers, factor): copies numbers that are scaled. Of f32, f64.
  kScale,
  // (to, from, numbers, factor, last, outer, inner, even): the same of spectra of real arrays,
  // outer x inner x last complex numbers each. Of those that are their own mirror image (the first
  // of a line; the last, where the real line is even) a real array has the Hermitian part alone.
  kSpectrum,
  // (to, from, rows, columns, apart, conjugates): transposes row-major matrices, one for each z of
  // the grid, 32 x 32 a block; those of `from` are `apart` numbers from each other. Complex ones
  // are conjugated where `conjugates` is not 0.
  kTranspose,
  // (to, first, bytes, count): addresses of arrays that are so far apart.
  kAddresses,
  // (info, factor, n): whether a factor of Cholesky is good; a block a matrix.
  kJudge,
  // (factor, info, n, lower): clears the other triangle, or makes all NaN; z of the grid a matrix.
  kFinish,
  // (info, matrices, rows, columns, triangle): 1 where a number is none or infinite, of what is
  // read: all, or the lower (1) or upper (2) triangle; a block a matrix.
  kFinite,
  // (matrices, flags, rows, columns): makes those NaN whose flag is not 0; a block a matrix.
  kSpoil,
  // (permutations, pivots, swaps, rows): row swaps one after the other, from 0, as a permutation;
  // a block a matrix.
  kPermutation,
  // (factors, taus, matrices, rows, columns): LAPACK's geqrf of small matrices; a block a matrix,
  // which shared memory holds. (to, factors, taus, rows, columns, reflectors): its orgqr.
  kSmallQr,
  kSmallReflectors,
};
inline constexpr size_t kCallKernels = static_cast<size_t>(CallKernel::kSmallReflectors) + 1;
inline constexpr int kCallThreads = 256, kSmallThreads = 128, kTransposeTile = 32,
                     kTransposeRows = 8;

CudaSource CallKernelText(CallKernel kernel, MatrixElement element);

}  // namespace tokamak::cuda
