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

template <typename T>
TOK_INLINE void Step2(const Step<T>& s) {
  const T* __restrict re = s.re;
  const T* __restrict im = s.im;
  T* __restrict to_re = s.to_re;
  T* __restrict to_im = s.to_im;
  const T w_re = s.twist_re[0], w_im = s.twist_im[0];
  TOK_APART
  for (int64_t i = 0; i < s.count; ++i) {
    T a_re = re[i], a_im = im[i], b_re = re[i + s.from], b_im = im[i + s.from];
    to_re[i] = a_re + b_re;
    to_im[i] = a_im + b_im;
    Twist(a_re - b_re, a_im - b_im, w_re, w_im, to_re + i + s.to, to_im + i + s.to);
  }
}

template <typename T>
TOK_INLINE void Step4(const Step<T>& s) {
  const T* __restrict re = s.re;
  const T* __restrict im = s.im;
  T* __restrict to_re = s.to_re;
  T* __restrict to_im = s.to_im;
  const T w1_re = s.twist_re[0], w1_im = s.twist_im[0], w2_re = s.twist_re[1],
          w2_im = s.twist_im[1], w3_re = s.twist_re[2], w3_im = s.twist_im[2], sign = s.sign;
  TOK_APART
  for (int64_t i = 0; i < s.count; ++i) {
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
template <typename T, int64_t kFactor>
TOK_INLINE void StepOdd(const Step<T>& s, const T* root_re, const T* root_im) {
  const T* __restrict re = s.re;
  const T* __restrict im = s.im;
  T* __restrict to_re = s.to_re;
  T* __restrict to_im = s.to_im;
  constexpr int64_t kHalf = (kFactor - 1) / 2;
  TOK_APART
  for (int64_t i = 0; i < s.count; ++i) {
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

template <typename T>
TOK_INLINE void RunSteps(const Pass<T>& pass, const Buffers<T>& x, const Buffers<T>& y,
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
        Step2(step);
        break;
      case 3:
        StepOdd<T, 3>(step, root_re, root_im);
        break;
      case 4:
        Step4(step);
        break;
      case 5:
        StepOdd<T, 5>(step, root_re, root_im);
        break;
      case 7:
        StepOdd<T, 7>(step, root_re, root_im);
        break;
      case 11:
        StepOdd<T, 11>(step, root_re, root_im);
        break;
      default:
        StepOdd<T, kLargest>(step, root_re, root_im);
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

}  // namespace tokamak::fft
