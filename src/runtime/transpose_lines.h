#pragma once

#include <cstdint>
#include <cstring>
#include <initializer_list>

#include "runtime/clones.h"

// Transposes complex float lines between the array layout (interleaved parts, lines contiguous) and
// the FFT layout (separate real and imaginary parts, element i of all lines contiguous). Works in
// registers on 8 x 8 tiles.

namespace tokamak::fft {

// Lines and elements of a tile: a 512-bit vector of complex floats.
constexpr int64_t kSquare = 8;

// Elements of one line, or one element of several lines. A complex number is moved as a double.
using Complexes = double __attribute__((vector_size(8 * kSquare)));
using Floats = float __attribute__((vector_size(8 * kSquare)));
using HalfFloats = float __attribute__((vector_size(4 * kSquare)));

TOK_INLINE void TransposeSquare(Complexes* v) {
  for (int i = 0; i < 4; ++i) {
    Complexes a = v[i], b = v[i + 4];
    v[i] = __builtin_shufflevector(a, b, 0, 1, 2, 3, 8, 9, 10, 11);
    v[i + 4] = __builtin_shufflevector(a, b, 4, 5, 6, 7, 12, 13, 14, 15);
  }
  for (int i : {0, 1, 4, 5}) {
    Complexes a = v[i], b = v[i + 2];
    v[i] = __builtin_shufflevector(a, b, 0, 1, 8, 9, 4, 5, 12, 13);
    v[i + 2] = __builtin_shufflevector(a, b, 2, 3, 10, 11, 6, 7, 14, 15);
  }
  for (int i : {0, 2, 4, 6}) {
    Complexes a = v[i], b = v[i + 1];
    v[i] = __builtin_shufflevector(a, b, 0, 8, 2, 10, 4, 12, 6, 14);
    v[i + 1] = __builtin_shufflevector(a, b, 1, 9, 3, 11, 5, 13, 7, 15);
  }
}

// Loads elements 0 to 7 of eight lines that are `stride` floats apart, and stores them `to` floats
// apart.
TOK_INLINE void FetchSquare(const float* from, int64_t stride, float* re, float* im, int64_t to) {
  Complexes v[kSquare];
  for (int l = 0; l < kSquare; ++l) std::memcpy(&v[l], from + l * stride, sizeof v[l]);
  TransposeSquare(v);
  for (int i = 0; i < kSquare; ++i) {
    Floats parts;
    std::memcpy(&parts, &v[i], sizeof parts);
    HalfFloats of_re = __builtin_shufflevector(parts, parts, 0, 2, 4, 6, 8, 10, 12, 14);
    HalfFloats of_im = __builtin_shufflevector(parts, parts, 1, 3, 5, 7, 9, 11, 13, 15);
    std::memcpy(re + i * to, &of_re, sizeof of_re);
    std::memcpy(im + i * to, &of_im, sizeof of_im);
  }
}

// Stores back, multiplied by `scale`.
TOK_INLINE void PutSquare(const float* re, const float* im, int64_t from, float scale, float* to,
                          int64_t stride) {
  Complexes v[kSquare];
  for (int i = 0; i < kSquare; ++i) {
    HalfFloats of_re, of_im;
    std::memcpy(&of_re, re + i * from, sizeof of_re);
    std::memcpy(&of_im, im + i * from, sizeof of_im);
    Floats parts =
        __builtin_shufflevector(of_re, of_im, 0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15);
    parts *= scale;
    std::memcpy(&v[i], &parts, sizeof parts);
  }
  TransposeSquare(v);
  for (int l = 0; l < kSquare; ++l) std::memcpy(to + l * stride, &v[l], sizeof v[l]);
}

}  // namespace tokamak::fft
