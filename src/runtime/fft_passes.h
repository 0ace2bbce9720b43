#pragma once

#include <cstdint>
#include <vector>

namespace tokamak::fft {

// Real and imaginary parts of complex numbers.
template <typename T>
struct Buffers {
  T* re = nullptr;
  T* im = nullptr;
};

// One factor of a transform: of `factor * rest * apart` numbers.
template <typename T>
struct Pass {
  int64_t factor = 1, rest = 1, apart = 1;
  bool inverse = false;
  std::vector<T> twist_re = {}, twist_im = {};  // `rest` for each place but the first, whose are 1
  std::vector<T> root_re = {}, root_im = {};    // of `factor`
};

// From x into y, every number being `lines` of them side by side.
void RunPass(const Pass<float>& pass, const Buffers<float>& x, const Buffers<float>& y,
             int64_t lines);
void RunPass(const Pass<double>& pass, const Buffers<double>& x, const Buffers<double>& y,
             int64_t lines);
// x[i] *= by[i], of `lines` each.
void Multiply(const Buffers<float>& x, const float* re, const float* im, int64_t count,
              int64_t lines);
void Multiply(const Buffers<double>& x, const double* re, const double* im, int64_t count,
              int64_t lines);

}  // namespace tokamak::fft
