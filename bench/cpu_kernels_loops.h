#pragma once

#include <cstdint>

// The benchmark kernels as plain C++ loops, compiled with -O3 -march=native: the baseline of
// bench/cpu_kernels.cc.
void LoopAxpy(const float* x, float* y, float a, int64_t n);
void LoopChain(const float* x, float* y, int64_t n);
void LoopTranspose(const float* x, float* y, int64_t rows, int64_t columns);  // 16 x 16 tiles
void LoopRowSum(const float* x, float* y, int64_t rows, int64_t columns);
