#pragma once

#include <cstdint>
#include <vector>

// The passes of a mixed-radix FFT (Stockham: each pass reads one buffer and writes the other).
namespace tokamak::fft {

// Real and imaginary parts of complex numbers, in separate arrays.
template <typename T>
struct Buffers {
  T* re = nullptr;
  T* im = nullptr;
};

// One pass: radix `factor`, of a transform of `factor * rest * stride` elements.
template <typename T>
struct Pass {
  int64_t factor = 1, rest = 1, stride = 1;
  bool inverse = false;
  // twiddles: `rest` for each index but the first, whose are 1
  std::vector<T> twist_re = {}, twist_im = {};
  std::vector<T> root_re = {}, root_im = {};  // roots of unity of order `factor`
};

// Runs a pass from x into y. Every element is a vector of `lines` numbers.
void RunPass(const Pass<float>& pass, const Buffers<float>& x, const Buffers<float>& y,
             int64_t lines);
void RunPass(const Pass<double>& pass, const Buffers<double>& x, const Buffers<double>& y,
             int64_t lines);
// x[i] *= (re[i], im[i]), for each of `lines`.
void Multiply(const Buffers<float>& x, const float* re, const float* im, int64_t count,
              int64_t lines);
void Multiply(const Buffers<double>& x, const double* re, const double* im, int64_t count,
              int64_t lines);

}  // namespace tokamak::fft
