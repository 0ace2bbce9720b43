// Moves lines between arrays and the interleaved layout of the FFT passes:
//
//   array: complex numbers, line by line        buffers: re[i * lines + l], im[i * lines + l]
//   (re, im)(re, im) ...                        element i of all lines is contiguous
//
// This is a transposition. It is done by squares in registers for f32, otherwise by segments of
// kMoved elements, so that destination cache lines are filled while they are in the cache.
//
// Real lines x and y are packed as z = x + i y. The spectra follow from Z by symmetry, with M =
// conj(Z[n - k]):
//
//   X[k] = (Z[k] + M) / 2          Y[k] = (Z[k] - M) / (2 i)          Z[k] = X[k] + i Y[k]

#include "runtime/fft_lines.h"

#include <type_traits>

#include "runtime/clones.h"
#include "runtime/transpose_lines.h"

namespace tokamak::fft {
namespace {

constexpr int64_t kMostPairs = 16;  // of those that are moved by tiles

// Elements of a line that are moved before the next line's: their destination stays in the cache.
// Chosen; no measurement on record.
constexpr int64_t kMoved = 32;

template <typename T>
TOK_INLINE void FetchLines(const T* __restrict from, const Side& s, const Buffers<T>& x) {
  T* __restrict re = x.re;
  T* __restrict im = x.im;
  if (s.stride == 1) {
    for (int64_t i = 0; i < s.length; ++i) {
      TOK_IVDEP
      for (int64_t l = 0; l < s.lines; ++l) {
        re[i * s.lines + l] = from[2 * (i * s.step + l)];
        im[i * s.lines + l] = from[2 * (i * s.step + l) + 1];
      }
    }
    return;
  }
  int64_t squares = 0;
  if constexpr (std::is_same_v<T, float>) {
    if (s.step == 1 && s.lines % kSquare == 0) squares = s.length / kSquare * kSquare;
    for (int64_t i = 0; i < squares; i += kSquare)
      for (int64_t l = 0; l < s.lines; l += kSquare)
        FetchSquare(from + 2 * (l * s.stride + i), 2 * s.stride, re + i * s.lines + l,
                    im + i * s.lines + l, s.lines);
  }
  for (int64_t begin = squares; begin < s.length; begin += kMoved) {
    int64_t end = begin + kMoved < s.length ? begin + kMoved : s.length;
    for (int64_t l = 0; l < s.lines; ++l) {
      const T* line = from + 2 * l * s.stride;
      for (int64_t i = begin; i < end; ++i) {
        re[i * s.lines + l] = line[2 * i * s.step];
        im[i * s.lines + l] = line[2 * i * s.step + 1];
      }
    }
  }
}

template <typename T>
TOK_INLINE void PutLines(const Buffers<T>& x, const Side& s, T scale, T* __restrict to) {
  const T* __restrict re = x.re;
  const T* __restrict im = x.im;
  if (s.stride == 1) {
    for (int64_t i = 0; i < s.length; ++i) {
      TOK_IVDEP
      for (int64_t l = 0; l < s.lines; ++l) {
        to[2 * (i * s.step + l)] = re[i * s.lines + l] * scale;
        to[2 * (i * s.step + l) + 1] = im[i * s.lines + l] * scale;
      }
    }
    return;
  }
  int64_t squares = 0;
  if constexpr (std::is_same_v<T, float>) {
    if (s.step == 1 && s.lines % kSquare == 0) squares = s.length / kSquare * kSquare;
    for (int64_t i = 0; i < squares; i += kSquare)
      for (int64_t l = 0; l < s.lines; l += kSquare)
        PutSquare(re + i * s.lines + l, im + i * s.lines + l, s.lines, scale,
                  to + 2 * (l * s.stride + i), 2 * s.stride);
  }
  for (int64_t begin = squares; begin < s.length; begin += kMoved) {
    int64_t end = begin + kMoved < s.length ? begin + kMoved : s.length;
    for (int64_t l = 0; l < s.lines; ++l) {
      T* line = to + 2 * l * s.stride;
      for (int64_t i = begin; i < end; ++i) {
        line[2 * i * s.step] = re[i * s.lines + l] * scale;
        line[2 * i * s.step + 1] = im[i * s.lines + l] * scale;
      }
    }
  }
}

// Calls body(pair, whether it has two lines, begin, end) for segments of elements, pair by pair.
template <typename Body>
TOK_INLINE void ForSegments(const Pairs& pairs, int64_t begin, int64_t end, Body&& body) {
  for (; begin < end; begin += kMoved)
    for (int64_t l = 0; l < pairs.count; ++l)
      body(l, l + 1 < pairs.count || !pairs.alone, begin,
           begin + kMoved < end ? begin + kMoved : end);
}

// How many elements of the lines of all pairs can be moved by tiles; the rest is moved
// individually.
template <typename T>
TOK_INLINE int64_t InSquares(const Pairs& p, int64_t numbers, int64_t at_once) {
  bool can =
      std::is_same_v<T, float> && p.count % kSquare == 0 && p.count <= kMostPairs && !p.alone;
  return can ? numbers / at_once * at_once : 0;
}

template <typename T>
TOK_INLINE void FetchPairsOf(const T* from, const Pairs& p, const Buffers<T>& x) {
  // Two adjacent elements of a real line are moved as one complex number.
  const int64_t squares = InSquares<T>(p, p.n, 2 * kSquare);
  if constexpr (std::is_same_v<T, float>) {
    for (int64_t i = 0; i < squares; i += 2 * kSquare) {
      for (int64_t l = 0; l < p.count; l += kSquare) {
        const T* even = from + 2 * l * p.n + i;
        int64_t at = i * p.count + l;
        FetchSquare(even, 2 * p.n, x.re + at, x.re + at + p.count, 2 * p.count);
        FetchSquare(even + p.n, 2 * p.n, x.im + at, x.im + at + p.count, 2 * p.count);
      }
    }
  }
  ForSegments(p, squares, p.n, [&](int64_t l, bool both, int64_t begin, int64_t end) {
    const T *even = from + 2 * l * p.n, *odd = even + p.n;
    for (int64_t i = begin; i < end; ++i) x.re[i * p.count + l] = even[i];
    for (int64_t i = begin; i < end; ++i) x.im[i * p.count + l] = both ? odd[i] : T(0);
  });
}

template <typename T>
TOK_INLINE void PutPairsOf(const Buffers<T>& x, const Pairs& p, T scale, T* to) {
  const int64_t squares = InSquares<T>(p, p.n, 2 * kSquare);
  if constexpr (std::is_same_v<T, float>) {
    for (int64_t i = 0; i < squares; i += 2 * kSquare) {
      for (int64_t l = 0; l < p.count; l += kSquare) {
        T* even = to + 2 * l * p.n + i;
        int64_t at = i * p.count + l;
        PutSquare(x.re + at, x.re + at + p.count, 2 * p.count, scale, even, 2 * p.n);
        PutSquare(x.im + at, x.im + at + p.count, 2 * p.count, scale, even + p.n, 2 * p.n);
      }
    }
  }
  ForSegments(p, squares, p.n, [&](int64_t l, bool both, int64_t begin, int64_t end) {
    T *even = to + 2 * l * p.n, *odd = even + p.n;
    for (int64_t i = begin; i < end; ++i) even[i] = x.re[i * p.count + l] * scale;
    for (int64_t i = begin; both && i < end; ++i) odd[i] = x.im[i * p.count + l] * scale;
  });
}

// The spectra of two real lines at one frequency, and that of the complex line that they form.
template <typename T>
struct Spectra {
  T even_re, even_im, odd_re, odd_im;
  TOK_INLINE static Spectra Of(T re, T im, T mirror_re, T mirror_im) {
    return {(re + mirror_re) / 2, (im - mirror_im) / 2, (im + mirror_im) / 2, (mirror_re - re) / 2};
  }
};

// The spectra of all pairs at eight frequencies.
struct SpectrumTile {
  float even_re[kSquare * kMostPairs], even_im[kSquare * kMostPairs];
  float odd_re[kSquare * kMostPairs], odd_im[kSquare * kMostPairs];
};

TOK_INLINE void SplitTile(const Buffers<float>& x, const Pairs& p, int64_t k, SpectrumTile& into) {
  for (int64_t column = 0; column < kSquare; ++column, ++k) {
    const int64_t at = k * p.count, mirror = (k == 0 ? 0 : p.n - k) * p.count;
    TOK_IVDEP
    for (int64_t l = 0; l < p.count; ++l) {
      auto s = Spectra<float>::Of(x.re[at + l], x.im[at + l], x.re[mirror + l], x.im[mirror + l]);
      int64_t to = column * p.count + l;
      into.even_re[to] = s.even_re;
      into.even_im[to] = s.even_im;
      into.odd_re[to] = s.odd_re;
      into.odd_im[to] = s.odd_im;
    }
  }
}

template <typename T>
TOK_INLINE void PutSpectraOf(const Buffers<T>& x, const Pairs& p, T* to) {
  const int64_t half = p.n / 2 + 1, squares = InSquares<T>(p, half, kSquare);
  if constexpr (std::is_same_v<T, float>) {
    SpectrumTile tile;
    for (int64_t k = 0; k < squares; k += kSquare) {
      SplitTile(x, p, k, tile);
      for (int64_t l = 0; l < p.count; l += kSquare) {
        T* even = to + 4 * l * half + 2 * k;
        PutSquare(tile.even_re + l, tile.even_im + l, p.count, 1, even, 4 * half);
        PutSquare(tile.odd_re + l, tile.odd_im + l, p.count, 1, even + 2 * half, 4 * half);
      }
    }
  }
  ForSegments(p, squares, half, [&](int64_t l, bool both, int64_t begin, int64_t end) {
    T *even = to + 4 * l * half, *odd = even + 2 * half;
    for (int64_t k = begin; k < end; ++k) {
      int64_t at = k * p.count + l, mirror = (k == 0 ? 0 : p.n - k) * p.count + l;
      auto s = Spectra<T>::Of(x.re[at], x.im[at], x.re[mirror], x.im[mirror]);
      even[2 * k] = s.even_re;
      even[2 * k + 1] = s.even_im;
      if (!both) continue;
      odd[2 * k] = s.odd_re;
      odd[2 * k + 1] = s.odd_im;
    }
  });
}

// Frequencies k that are not their own mirror image.
TOK_INLINE void JoinTile(const SpectrumTile& from, const Pairs& p, int64_t k,
                         const Buffers<float>& x) {
  for (int64_t column = 0; column < kSquare; ++column, ++k) {
    const int64_t at = k * p.count, mirror = (p.n - k) * p.count;
    TOK_IVDEP
    for (int64_t l = 0; l < p.count; ++l) {
      int64_t of = column * p.count + l;
      x.re[at + l] = from.even_re[of] - from.odd_im[of];
      x.im[at + l] = from.even_im[of] + from.odd_re[of];
      x.re[mirror + l] = from.even_re[of] + from.odd_im[of];
      x.im[mirror + l] = from.odd_re[of] - from.even_im[of];
    }
  }
}

// Frequencies that are their own mirror image have only a real part.
template <typename T>
TOK_INLINE void FetchSpectraOf(const T* from, const Pairs& p, const Buffers<T>& x) {
  const int64_t half = p.n / 2 + 1, squares = InSquares<T>(p, (p.n - 1) / 2, kSquare);
  if constexpr (std::is_same_v<T, float>) {
    SpectrumTile tile;
    for (int64_t k = 1; k < 1 + squares; k += kSquare) {
      for (int64_t l = 0; l < p.count; l += kSquare) {
        const T* even = from + 4 * l * half + 2 * k;
        FetchSquare(even, 4 * half, tile.even_re + l, tile.even_im + l, p.count);
        FetchSquare(even + 2 * half, 4 * half, tile.odd_re + l, tile.odd_im + l, p.count);
      }
      JoinTile(tile, p, k, x);
    }
  }
  auto one_by_one = [&](int64_t l, bool both, int64_t begin, int64_t end) {
    const T *even = from + 4 * l * half, *odd = even + 2 * half;
    for (int64_t k = begin; k < end; ++k) {
      bool own = k == 0 || 2 * k == p.n;
      T re = even[2 * k], im = own ? T(0) : even[2 * k + 1];
      T odd_re = both ? odd[2 * k] : T(0), odd_im = both && !own ? odd[2 * k + 1] : T(0);
      x.re[k * p.count + l] = re - odd_im;
      x.im[k * p.count + l] = im + odd_re;
      if (own) continue;
      x.re[(p.n - k) * p.count + l] = re + odd_im;
      x.im[(p.n - k) * p.count + l] = odd_re - im;
    }
  };
  ForSegments(p, 0, 1, one_by_one);
  ForSegments(p, 1 + squares, half, one_by_one);
}

}  // namespace

TOK_CLONES void Fetch(const float* from, const Side& side, const Buffers<float>& x) {
  FetchLines(from, side, x);
}

TOK_CLONES void Fetch(const double* from, const Side& side, const Buffers<double>& x) {
  FetchLines(from, side, x);
}

TOK_CLONES void Put(const Buffers<float>& x, const Side& side, float scale, float* to) {
  PutLines(x, side, scale, to);
}

TOK_CLONES void Put(const Buffers<double>& x, const Side& side, double scale, double* to) {
  PutLines(x, side, scale, to);
}

#define TOK_FFT_OF_PAIRS(T)                                                              \
  TOK_CLONES void FetchPairs(const T* from, const Pairs& pairs, const Buffers<T>& x) {   \
    FetchPairsOf(from, pairs, x);                                                        \
  }                                                                                      \
  TOK_CLONES void PutPairs(const Buffers<T>& x, const Pairs& pairs, T scale, T* to) {    \
    PutPairsOf(x, pairs, scale, to);                                                     \
  }                                                                                      \
  TOK_CLONES void FetchSpectra(const T* from, const Pairs& pairs, const Buffers<T>& x) { \
    FetchSpectraOf(from, pairs, x);                                                      \
  }                                                                                      \
  TOK_CLONES void PutSpectra(const Buffers<T>& x, const Pairs& pairs, T* to) {           \
    PutSpectraOf(x, pairs, to);                                                          \
  }
TOK_FFT_OF_PAIRS(float)
TOK_FFT_OF_PAIRS(double)
#undef TOK_FFT_OF_PAIRS

}  // namespace tokamak::fft
