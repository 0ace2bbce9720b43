#include "runtime/fft_passes.h"

#include "runtime/clones.h"

namespace tokamak::fft {
namespace {

constexpr int64_t kLargest = 13;

// What one step of a pass works on: `count` numbers side by side, of each of `factor` places.
template <typename T>
struct Step {
  const T *re, *im;
  T *to_re, *to_im;
  int64_t from, to;  // how far places are apart
  int64_t count;
  const T *twist_re, *twist_im;
  T sign;  // of i in the roots: -1 forward
};

template <typename T>
TOK_INLINE void Twist(T re, T im, T by_re, T by_im, T* to_re, T* to_im) {
  *to_re = re * by_re - im * by_im;
  *to_im = re * by_im + im * by_re;
}

// kRun: of what the step works on, when that is known; else 0.
template <int64_t kRun, typename T>
TOK_INLINE void Step2(const Step<T>& s) {
  const T* __restrict re = s.re;
  const T* __restrict im = s.im;
  T* __restrict to_re = s.to_re;
  T* __restrict to_im = s.to_im;
  const T w_re = s.twist_re[0], w_im = s.twist_im[0];
  const int64_t count = kRun > 0 ? kRun : s.count;
  TOK_APART
  for (int64_t i = 0; i < count; ++i) {
    T a_re = re[i], a_im = im[i], b_re = re[i + s.from], b_im = im[i + s.from];
    to_re[i] = a_re + b_re;
    to_im[i] = a_im + b_im;
    Twist(a_re - b_re, a_im - b_im, w_re, w_im, to_re + i + s.to, to_im + i + s.to);
  }
}

template <int64_t kRun, typename T>
TOK_INLINE void Step4(const Step<T>& s) {
  const T* __restrict re = s.re;
  const T* __restrict im = s.im;
  T* __restrict to_re = s.to_re;
  T* __restrict to_im = s.to_im;
  const T w1_re = s.twist_re[0], w1_im = s.twist_im[0], w2_re = s.twist_re[1],
          w2_im = s.twist_im[1], w3_re = s.twist_re[2], w3_im = s.twist_im[2], sign = s.sign;
  const int64_t count = kRun > 0 ? kRun : s.count;
  TOK_APART
  for (int64_t i = 0; i < count; ++i) {
    T a_re = re[i], a_im = im[i], b_re = re[i + s.from], b_im = im[i + s.from];
    T c_re = re[i + 2 * s.from], c_im = im[i + 2 * s.from];
    T d_re = re[i + 3 * s.from], d_im = im[i + 3 * s.from];
    T even_re = a_re + c_re, even_im = a_im + c_im, odd_re = b_re + d_re, odd_im = b_im + d_im;
    T across_re = a_re - c_re, across_im = a_im - c_im;
    // i (b - d), or -i (b - d)
    T turned_re = -sign * (b_im - d_im), turned_im = sign * (b_re - d_re);
    to_re[i] = even_re + odd_re;
    to_im[i] = even_im + odd_im;
    Twist(across_re + turned_re, across_im + turned_im, w1_re, w1_im, to_re + i + s.to,
          to_im + i + s.to);
    Twist(even_re - odd_re, even_im - odd_im, w2_re, w2_im, to_re + i + 2 * s.to,
          to_im + i + 2 * s.to);
    Twist(across_re - turned_re, across_im - turned_im, w3_re, w3_im, to_re + i + 3 * s.to,
          to_im + i + 3 * s.to);
  }
}

// Any odd factor, from its roots: the terms j and factor - j go together.
template <int64_t kRun, int64_t kFactor, typename T>
TOK_INLINE void StepOdd(const Step<T>& s, const T* root_re, const T* root_im) {
  const T* __restrict re = s.re;
  const T* __restrict im = s.im;
  T* __restrict to_re = s.to_re;
  T* __restrict to_im = s.to_im;
  constexpr int64_t kHalf = (kFactor - 1) / 2;
  const int64_t count = kRun > 0 ? kRun : s.count;
  TOK_APART
  for (int64_t i = 0; i < count; ++i) {
    T sum_re[kHalf + 1], sum_im[kHalf + 1], gap_re[kHalf + 1], gap_im[kHalf + 1];
    T all_re = re[i], all_im = im[i];
    for (int64_t j = 1; j <= kHalf; ++j) {
      T a_re = re[i + j * s.from], a_im = im[i + j * s.from];
      T b_re = re[i + (kFactor - j) * s.from], b_im = im[i + (kFactor - j) * s.from];
      sum_re[j] = a_re + b_re;
      sum_im[j] = a_im + b_im;
      gap_re[j] = a_re - b_re;
      gap_im[j] = a_im - b_im;
      all_re += sum_re[j];
      all_im += sum_im[j];
    }
    to_re[i] = all_re;
    to_im[i] = all_im;
    for (int64_t k = 1; k <= kHalf; ++k) {
      T even_re = re[i], even_im = im[i], odd_re = 0, odd_im = 0;
      for (int64_t j = 1; j <= kHalf; ++j) {
        int64_t r = j * k % kFactor;
        even_re += root_re[r] * sum_re[j];
        even_im += root_re[r] * sum_im[j];
        odd_re -= root_im[r] * gap_im[j];
        odd_im += root_im[r] * gap_re[j];
      }
      int64_t m = kFactor - k;
      Twist(even_re + odd_re, even_im + odd_im, s.twist_re[k - 1], s.twist_im[k - 1],
            to_re + i + k * s.to, to_im + i + k * s.to);
      Twist(even_re - odd_re, even_im - odd_im, s.twist_re[m - 1], s.twist_im[m - 1],
            to_re + i + m * s.to, to_im + i + m * s.to);
    }
  }
}

template <int64_t kRun, typename T>
TOK_INLINE void RunStepsOf(const Pass<T>& pass, const Buffers<T>& x, const Buffers<T>& y,
                           int64_t lines) {
  int64_t run = pass.apart * lines;
  Step<T> step{.re = x.re,
               .im = x.im,
               .to_re = y.re,
               .to_im = y.im,
               .from = run * pass.rest,
               .to = run,
               .count = run,
               .twist_re = pass.twist_re.data(),
               .twist_im = pass.twist_im.data(),
               .sign = pass.inverse ? T(1) : T(-1)};
  const T *root_re = pass.root_re.data(), *root_im = pass.root_im.data();
  for (int64_t p = 0; p < pass.rest; ++p) {
    switch (pass.factor) {
      case 2:
        Step2<kRun>(step);
        break;
      case 3:
        StepOdd<kRun, 3>(step, root_re, root_im);
        break;
      case 4:
        Step4<kRun>(step);
        break;
      case 5:
        StepOdd<kRun, 5>(step, root_re, root_im);
        break;
      case 7:
        StepOdd<kRun, 7>(step, root_re, root_im);
        break;
      case 11:
        StepOdd<kRun, 11>(step, root_re, root_im);
        break;
      default:
        StepOdd<kRun, kLargest>(step, root_re, root_im);
    }
    step.re += run;
    step.im += run;
    step.to_re += run * pass.factor;
    step.to_im += run * pass.factor;
    step.twist_re += pass.factor - 1;
    step.twist_im += pass.factor - 1;
  }
}

template <typename T>
TOK_INLINE void RunSteps(const Pass<T>& pass, const Buffers<T>& x, const Buffers<T>& y,
                         int64_t lines) {
  if (pass.apart == 1 && lines == 16) return RunStepsOf<16>(pass, x, y, lines);
  if (pass.apart * lines == 64) return RunStepsOf<64>(pass, x, y, lines);
  RunStepsOf<0>(pass, x, y, lines);
}

// Numbers of a line that are moved before the next line's: what they are moved to stays near.
constexpr int64_t kMoved = 32;

template <typename T>
TOK_INLINE void FetchLines(const T* __restrict from, const Side& s, const Buffers<T>& x) {
  T* __restrict re = x.re;
  T* __restrict im = x.im;
  if (s.apart == 1) {
    for (int64_t i = 0; i < s.length; ++i) {
      TOK_APART
      for (int64_t l = 0; l < s.lines; ++l) {
        re[i * s.lines + l] = from[2 * (i * s.step + l)];
        im[i * s.lines + l] = from[2 * (i * s.step + l) + 1];
      }
    }
    return;
  }
  for (int64_t begin = 0; begin < s.length; begin += kMoved) {
    int64_t end = begin + kMoved < s.length ? begin + kMoved : s.length;
    for (int64_t l = 0; l < s.lines; ++l) {
      const T* line = from + 2 * l * s.apart;
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
  if (s.apart == 1) {
    for (int64_t i = 0; i < s.length; ++i) {
      TOK_APART
      for (int64_t l = 0; l < s.lines; ++l) {
        to[2 * (i * s.step + l)] = re[i * s.lines + l] * scale;
        to[2 * (i * s.step + l) + 1] = im[i * s.lines + l] * scale;
      }
    }
    return;
  }
  for (int64_t begin = 0; begin < s.length; begin += kMoved) {
    int64_t end = begin + kMoved < s.length ? begin + kMoved : s.length;
    for (int64_t l = 0; l < s.lines; ++l) {
      T* line = to + 2 * l * s.apart;
      for (int64_t i = begin; i < end; ++i) {
        line[2 * i * s.step] = re[i * s.lines + l] * scale;
        line[2 * i * s.step + 1] = im[i * s.lines + l] * scale;
      }
    }
  }
}

// Calls body(pair, whether it has two lines, begin, end) for stretches of numbers, pair by pair.
template <typename Body>
TOK_INLINE void ForStretches(const Pairs& pairs, int64_t begin, int64_t end, Body&& body) {
  for (; begin < end; begin += kMoved)
    for (int64_t l = 0; l < pairs.count; ++l)
      body(l, l + 1 < pairs.count || !pairs.alone, begin,
           begin + kMoved < end ? begin + kMoved : end);
}

template <typename T>
TOK_INLINE void FetchPairsOf(const T* from, const Pairs& p, const Buffers<T>& x) {
  ForStretches(p, 0, p.n, [&](int64_t l, bool both, int64_t begin, int64_t end) {
    const T *even = from + 2 * l * p.n, *odd = even + p.n;
    for (int64_t i = begin; i < end; ++i) x.re[i * p.count + l] = even[i];
    for (int64_t i = begin; i < end; ++i) x.im[i * p.count + l] = both ? odd[i] : T(0);
  });
}

template <typename T>
TOK_INLINE void PutPairsOf(const Buffers<T>& x, const Pairs& p, T scale, T* to) {
  ForStretches(p, 0, p.n, [&](int64_t l, bool both, int64_t begin, int64_t end) {
    T *even = to + 2 * l * p.n, *odd = even + p.n;
    for (int64_t i = begin; i < end; ++i) even[i] = x.re[i * p.count + l] * scale;
    for (int64_t i = begin; both && i < end; ++i) odd[i] = x.im[i * p.count + l] * scale;
  });
}

template <typename T>
TOK_INLINE void PutSpectraOf(const Buffers<T>& x, const Pairs& p, T* to) {
  const int64_t half = p.n / 2 + 1;
  ForStretches(p, 0, half, [&](int64_t l, bool both, int64_t begin, int64_t end) {
    T *even = to + 4 * l * half, *odd = even + 2 * half;
    for (int64_t k = begin; k < end; ++k) {
      int64_t at = k * p.count + l, mirror = (k == 0 ? 0 : p.n - k) * p.count + l;
      T re = x.re[at], im = x.im[at], other_re = x.re[mirror], other_im = x.im[mirror];
      even[2 * k] = (re + other_re) / 2;
      even[2 * k + 1] = (im - other_im) / 2;
      if (!both) continue;
      odd[2 * k] = (im + other_im) / 2;
      odd[2 * k + 1] = (other_re - re) / 2;
    }
  });
}

// Of what is its own mirror only the real part counts.
template <typename T>
TOK_INLINE void FetchSpectraOf(const T* from, const Pairs& p, const Buffers<T>& x) {
  const int64_t half = p.n / 2 + 1;
  ForStretches(p, 0, half, [&](int64_t l, bool both, int64_t begin, int64_t end) {
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
  });
}

template <typename T>
TOK_INLINE void MultiplyBy(const Buffers<T>& x, const T* by_re, const T* by_im, int64_t count,
                           int64_t lines) {
  T* __restrict re = x.re;
  T* __restrict im = x.im;
  for (int64_t i = 0; i < count; ++i) {
    T b_re = by_re[i], b_im = by_im[i];
    TOK_APART
    for (int64_t l = i * lines; l < (i + 1) * lines; ++l) {
      T a_re = re[l], a_im = im[l];
      re[l] = a_re * b_re - a_im * b_im;
      im[l] = a_re * b_im + a_im * b_re;
    }
  }
}

}  // namespace

TOK_CLONES void RunPass(const Pass<float>& pass, const Buffers<float>& x, const Buffers<float>& y,
                        int64_t lines) {
  RunSteps(pass, x, y, lines);
}

TOK_CLONES void RunPass(const Pass<double>& pass, const Buffers<double>& x,
                        const Buffers<double>& y, int64_t lines) {
  RunSteps(pass, x, y, lines);
}

TOK_CLONES void Multiply(const Buffers<float>& x, const float* re, const float* im, int64_t count,
                         int64_t lines) {
  MultiplyBy(x, re, im, count, lines);
}

TOK_CLONES void Multiply(const Buffers<double>& x, const double* re, const double* im,
                         int64_t count, int64_t lines) {
  MultiplyBy(x, re, im, count, lines);
}

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
