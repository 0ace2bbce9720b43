#pragma once

#include <cstdint>

// Building blocks of blocked factorizations and triangular solves of double matrices: panels of up
// to 32 columns.

namespace tokamak::panels {

// Columns of a panel. Chosen; no measurement on record.
constexpr int64_t kWidth = 32;

// The number of columns to compute with, rounded up to a supported width: 8, 16 or 32.
int64_t PaddedWidth(int64_t columns);

// c (rows x width, row stride `c_row`) -= a (rows x depth, row stride `a_row`) * b (depth x width,
// dense), accumulated in the order of depth. `width` is padded.
struct Product {
  double* c;
  const double *a, *b;
  int64_t c_row, a_row, rows, depth, width;
};
void SubtractProduct(const Product& product);

// Cholesky-factors a block (row stride `row`) in place, and stores the lower factor by columns:
// columns[j * width + i] is element (i, j), or 0. Requires size <= width, padded. Returns false if
// the block is not positive definite.
bool FactorBlock(double* a, int64_t row, int64_t size, int64_t width, double* columns);

// Replaces each row r by the solution x of x L^T = r, with L given by columns.
void SolveRows(double* a, int64_t row, int64_t rows, int64_t size, int64_t width,
               const double* columns);

// Replaces x (size x width, dense) by the solution of L y = x; L has row stride `row`.
void SolveBlock(const double* lower, int64_t row, int64_t size, bool unit, double* x,
                int64_t width);

void Convert(const float* from, double* to, int64_t count);
void Convert(const double* from, float* to, int64_t count);

}  // namespace tokamak::panels
