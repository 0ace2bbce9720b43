#pragma once

#include <cstdint>

// Cholesky factorization and triangular solves of batches of row-major matrices on the thread pool.
// Accumulation is in double, in the order of the textbook loops; panel products (panels.h) may use
// fused multiply-adds. Results are identical for any number of threads.

namespace tokamak {

enum class MatrixElement : uint8_t { kF32, kF64, kC64, kC128 };

// a = L L^H, or U^H U. One triangle is read; the other becomes 0. The result is NaN if the matrix
// is not positive definite.
struct CholeskyCall {
  MatrixElement element{};
  int64_t batch = 1, n = 0;
  bool lower = true;
};
void RunCholesky(const CholeskyCall& call, const void* a, void* factor);

// op(a) x = b, or x op(a) = b; a is n x n, b has `rows` and `columns`.
struct TriangularCall {
  MatrixElement element{};
  int64_t batch = 1, n = 0, rows = 0, columns = 0;
  bool left = true, lower = true, unit = false, transposed = false, conjugated = false;
};
void RunTriangular(const TriangularCall& call, const void* a, const void* b, void* x);

}  // namespace tokamak
