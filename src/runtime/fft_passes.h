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
  std::vector<T> twist_re = {}, twist_im = {};  // for each of `rest`: all but the first, which is 1
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

// `lines` complex lines, of which number i of line l is at from[2 * (i * step + l * apart)], side
// by side.
struct Side {
  int64_t lines, length, step, apart;
};
void Fetch(const float* from, const Side& side, const Buffers<float>& x);
void Fetch(const double* from, const Side& side, const Buffers<double>& x);
// And back, times `scale`.
void Put(const Buffers<float>& x, const Side& side, float scale, float* to);
void Put(const Buffers<double>& x, const Side& side, double scale, double* to);

// Two real lines are one complex line: their spectra, of n / 2 + 1 numbers each, are its even and
// its odd part. `alone`: the last line has no other.
struct Pairs {
  int64_t count, n;
  bool alone;
};
#define TOK_FFT_OF_PAIRS(T)                                                  \
  void FetchPairs(const T* from, const Pairs& pairs, const Buffers<T>& x);   \
  void PutPairs(const Buffers<T>& x, const Pairs& pairs, T scale, T* to);    \
  void FetchSpectra(const T* from, const Pairs& pairs, const Buffers<T>& x); \
  void PutSpectra(const Buffers<T>& x, const Pairs& pairs, T* to);
TOK_FFT_OF_PAIRS(float)
TOK_FFT_OF_PAIRS(double)
#undef TOK_FFT_OF_PAIRS

}  // namespace tokamak::fft
