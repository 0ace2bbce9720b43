#pragma once

#include <cstdint>

// What blocked factors and solves of double matrices are made of: panels of up to 32 columns.

namespace tokamak::panels {

constexpr int64_t kWidth = 32;

// Columns that are computed with, when there are so many: 8, 16 or 32.
int64_t PaddedWidth(int64_t columns);

// c (rows x width, a row every `c_row`) -= a (rows x depth, a row every `a_row`) * b (depth x
// width, dense), in the order of the depth. Width is padded.
struct Product {
  double* c;
  const double *a, *b;
  int64_t c_row, a_row, rows, depth, width;
};
void SubtractProduct(const Product& product);

// The lower factor of a block (a row every `row`), in place, and by columns: columns[j * width + i]
// is its element (i, j), or 0. size <= width, which is padded. false: not positive definite.
bool FactorBlock(double* a, int64_t row, int64_t size, int64_t width, double* columns);

// Each row x becomes that with x L^T = the row, L being given by columns.
void SolveRows(double* a, int64_t row, int64_t rows, int64_t size, int64_t width,
               const double* columns);

// Rows of x (size x width, dense) become those with L x = the rows; L is of rows, one every `row`.
void SolveBlock(const double* lower, int64_t row, int64_t size, bool unit, double* x,
                int64_t width);

void Convert(const float* from, double* to, int64_t count);
void Convert(const double* from, float* to, int64_t count);

}  // namespace tokamak::panels
