#pragma once

#include <cstdint>

#include "runtime/fft_passes.h"

// How lines come from arrays to stand side by side, and go back.

namespace tokamak::fft {

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
