#include "cpu_kernels_loops.h"

#include <cmath>
#include <cstring>

void LoopAxpy(const float* __restrict x, float* __restrict y, float a, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = std::fma(a, x[i], y[i]);
}

// Similar to exp: a rounding, a polynomial, an assembled exponent.
void LoopChain(const float* __restrict x, float* __restrict y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    float t = x[i] * 1.44269504f;
    float k = __builtin_rintf(t);
    float r = t - k;
    float p = 0.00133335581f;
    p = std::fma(p, r, 0.00961812910f);
    p = std::fma(p, r, 0.05550410866f);
    p = std::fma(p, r, 0.24022650695f);
    p = std::fma(p, r, 0.69314718056f);
    p = std::fma(p, r, 1.0f);
    int32_t bits = (static_cast<int32_t>(k) + 127) << 23;
    float scale;
    std::memcpy(&scale, &bits, 4);
    y[i] = p * scale;
  }
}

// 64 partial sums, so that the compiler can vectorize without reassociation.
void LoopRowSum(const float* __restrict x, float* __restrict y, int64_t rows, int64_t columns) {
  for (int64_t r = 0; r < rows; ++r) {
    float part[64] = {};
    for (int64_t c = 0; c + 64 <= columns; c += 64)
      for (int64_t l = 0; l < 64; ++l) part[l] += x[r * columns + c + l];
    float sum = 0;
    for (float p : part) sum += p;
    y[r] = sum;
  }
}

void LoopTranspose(const float* __restrict x, float* __restrict y, int64_t rows, int64_t columns) {
  for (int64_t r = 0; r < rows; r += 16)
    for (int64_t c = 0; c < columns; c += 16)
      for (int64_t i = 0; i < 16; ++i)
        for (int64_t j = 0; j < 16; ++j) y[(c + i) * rows + r + j] = x[(r + j) * columns + c + i];
}
