#pragma once

#include <cstdint>

#include "runtime/fft_passes.h"

// Gathers lines of an array into the interleaved layout of the FFT passes, and scatters them back.

namespace tokamak::fft {

// `lines` complex lines in an array: element i of line l is at from[2 * (i * step + l * stride)].
// In the buffers, element i of all lines is contiguous.
struct Side {
  int64_t lines, length, step, stride;
};
void Fetch(const float* from, const Side& side, const Buffers<float>& x);
void Fetch(const double* from, const Side& side, const Buffers<double>& x);
// Scatters back, multiplied by `scale`.
void Put(const Buffers<float>& x, const Side& side, float scale, float* to);
void Put(const Buffers<double>& x, const Side& side, double scale, double* to);

// Two real lines are transformed as one complex line: their spectra, of n / 2 + 1 elements each,
// are its even and its odd part. `alone`: the last line has no partner.
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
