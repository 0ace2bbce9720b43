// Butterflies of the Stockham passes. A pass of radix r reads r inputs that are `from` apart,
// transforms them and writes r outputs that are `to` apart, multiplied by twiddles:
//
//   y[p r + k] = w(p, k) * sum over j of x[p + j rest] * root(j k)        for p < rest
//
// Each element above is a vector of run = stride * lines numbers, which the inner loop traverses
// without dependences; run lengths 4, 16 and 64 are compile-time constants so that short loops
// unroll. Odd radices combine terms j and r - j, whose roots are conjugate: half of the
// multiplications. TOK_CLONES compiles each entry point for several instruction sets, chosen when
// the program starts.

#include "runtime/fft_passes.h"

#include "runtime/clones.h"

namespace tokamak::fft {
namespace {

// The largest prime factor with its own pass; lengths with larger ones use Bluestein's algorithm
// (fft.cc).
constexpr int64_t kLargest = 13;

// One butterfly step of a pass: `count` contiguous numbers for each of `factor` inputs.
template <typename T>
struct Step {
  const T *re, *im;
  T *to_re, *to_im;
  int64_t from, to;  // strides between inputs and between outputs
  int64_t count;
  const T *twist_re, *twist_im;  // of input 1
  int64_t twists;                // stride of the twiddles between inputs
  T sign;                        // of i in the roots: -1 forward
};

template <typename T>
TOK_INLINE void Twist(T re, T im, T by_re, T by_im, T* to_re, T* to_im) {
  *to_re = re * by_re - im * by_im;
  *to_im = re * by_im + im * by_re;
}

// kRun: `count` if it is a compile-time constant, else 0.
template <int64_t kRun, typename T>
TOK_INLINE void Step2(const Step<T>& s) {
  const T* __restrict re = s.re;
  const T* __restrict im = s.im;
  T* __restrict to_re = s.to_re;
  T* __restrict to_im = s.to_im;
  const T w_re = s.twist_re[0], w_im = s.twist_im[0];
  const int64_t count = kRun > 0 ? kRun : s.count;
  TOK_IVDEP
  for (int64_t i = 0; i < count; ++i) {
    T a_re = re[i], a_im = im[i], b_re = re[i + s.from], b_im = im[i + s.from];
    to_re[i] = a_re + b_re;
    to_im[i] = a_im + b_im;
    Twist(a_re - b_re, a_im - b_im, w_re, w_im, to_re + i + s.to, to_im + i + s.to);
  }
}

template <typename T>
struct Complex {
  T re, im;
};

// A radix-4 butterfly.
template <typename T>
struct Quarters {
  T re[4], im[4];
  TOK_INLINE Quarters(Complex<T> a, Complex<T> b, Complex<T> c, Complex<T> d, T sign) {
    T even_re = a.re + c.re, even_im = a.im + c.im, odd_re = b.re + d.re, odd_im = b.im + d.im;
    T across_re = a.re - c.re, across_im = a.im - c.im;
    // i (b - d), or -i (b - d)
    T turned_re = -sign * (b.im - d.im), turned_im = sign * (b.re - d.re);
    re[0] = even_re + odd_re;
    im[0] = even_im + odd_im;
    re[1] = across_re + turned_re;
    im[1] = across_im + turned_im;
    re[2] = even_re - odd_re;
    im[2] = even_im - odd_im;
    re[3] = across_re - turned_re;
    im[3] = across_im - turned_im;
  }
};

template <int64_t kRun, typename T>
TOK_INLINE void Step4(const Step<T>& s) {
  const T* __restrict re = s.re;
  const T* __restrict im = s.im;
  T* __restrict to_re = s.to_re;
  T* __restrict to_im = s.to_im;
  const T w1_re = s.twist_re[0], w1_im = s.twist_im[0], w2_re = s.twist_re[s.twists],
          w2_im = s.twist_im[s.twists], w3_re = s.twist_re[2 * s.twists],
          w3_im = s.twist_im[2 * s.twists], sign = s.sign;
  const int64_t count = kRun > 0 ? kRun : s.count, n = s.from;
  TOK_IVDEP
  for (int64_t i = 0; i < count; ++i) {
    Quarters<T> q({re[i], im[i]}, {re[i + n], im[i + n]}, {re[i + 2 * n], im[i + 2 * n]},
                  {re[i + 3 * n], im[i + 3 * n]}, sign);
    to_re[i] = q.re[0];
    to_im[i] = q.im[0];
    Twist(q.re[1], q.im[1], w1_re, w1_im, to_re + i + s.to, to_im + i + s.to);
    Twist(q.re[2], q.im[2], w2_re, w2_im, to_re + i + 2 * s.to, to_im + i + 2 * s.to);
    Twist(q.re[3], q.im[3], w3_re, w3_im, to_re + i + 3 * s.to, to_im + i + 3 * s.to);
  }
}

// Any odd radix, from its roots of unity: terms j and factor - j are combined.
template <int64_t kRun, int64_t kFactor, typename T>
TOK_INLINE void StepOdd(const Step<T>& s, const T* root_re, const T* root_im) {
  const T* __restrict re = s.re;
  const T* __restrict im = s.im;
  T* __restrict to_re = s.to_re;
  T* __restrict to_im = s.to_im;
  constexpr int64_t kHalf = (kFactor - 1) / 2;
  const int64_t count = kRun > 0 ? kRun : s.count;
  T of_re[kFactor], of_im[kFactor], w_re[kFactor], w_im[kFactor];
  for (int64_t k = 0; k < kFactor; ++k) {
    of_re[k] = root_re[k];
    of_im[k] = root_im[k];
    w_re[k] = k == 0 ? T(1) : s.twist_re[(k - 1) * s.twists];
    w_im[k] = k == 0 ? T(0) : s.twist_im[(k - 1) * s.twists];
  }
  TOK_IVDEP
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
        even_re += of_re[r] * sum_re[j];
        even_im += of_re[r] * sum_im[j];
        odd_re -= of_im[r] * gap_im[j];
        odd_im += of_im[r] * gap_re[j];
      }
      int64_t m = kFactor - k;
      Twist(even_re + odd_re, even_im + odd_im, w_re[k], w_im[k], to_re + i + k * s.to,
            to_im + i + k * s.to);
      Twist(even_re - odd_re, even_im - odd_im, w_re[m], w_im[m], to_re + i + m * s.to,
            to_im + i + m * s.to);
    }
  }
}

// All butterflies of a pass: step p reads its inputs `rest` elements apart and writes its outputs
// next to each other.
template <int64_t kRun, typename T>
TOK_INLINE void RunStepsOf(const Pass<T>& pass, const Buffers<T>& x, const Buffers<T>& y,
                           int64_t lines) {
  int64_t run = pass.stride * lines;
  Step<T> step{.re = x.re,
               .im = x.im,
               .to_re = y.re,
               .to_im = y.im,
               .from = run * pass.rest,
               .to = run,
               .count = run,
               .twist_re = pass.twist_re.data(),
               .twist_im = pass.twist_im.data(),
               .twists = pass.rest,
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
    ++step.twist_re;
    ++step.twist_im;
  }
}

// The first pass of a single line with radix 4: every step has one number, so the pass is
// vectorized across steps.
template <typename T>
TOK_INLINE void RunFirst4(const Pass<T>& pass, const Buffers<T>& x, const Buffers<T>& y) {
  const int64_t n = pass.rest;
  const T* __restrict re = x.re;
  const T* __restrict im = x.im;
  T* __restrict to_re = y.re;
  T* __restrict to_im = y.im;
  const T* __restrict w_re = pass.twist_re.data();
  const T* __restrict w_im = pass.twist_im.data();
  const T sign = pass.inverse ? T(1) : T(-1);
  TOK_IVDEP
  for (int64_t p = 0; p < n; ++p) {
    Quarters<T> q({re[p], im[p]}, {re[p + n], im[p + n]}, {re[p + 2 * n], im[p + 2 * n]},
                  {re[p + 3 * n], im[p + 3 * n]}, sign);
    to_re[4 * p] = q.re[0];
    to_im[4 * p] = q.im[0];
    Twist(q.re[1], q.im[1], w_re[p], w_im[p], to_re + 4 * p + 1, to_im + 4 * p + 1);
    Twist(q.re[2], q.im[2], w_re[p + n], w_im[p + n], to_re + 4 * p + 2, to_im + 4 * p + 2);
    Twist(q.re[3], q.im[3], w_re[p + 2 * n], w_im[p + 2 * n], to_re + 4 * p + 3, to_im + 4 * p + 3);
  }
}

template <typename T>
TOK_INLINE void RunSteps(const Pass<T>& pass, const Buffers<T>& x, const Buffers<T>& y,
                         int64_t lines) {
  const int64_t run = pass.stride * lines;
  if (run == 1 && pass.factor == 4) return RunFirst4(pass, x, y);
  if (run == 4) return RunStepsOf<4>(pass, x, y, lines);
  if (run == 16) return RunStepsOf<16>(pass, x, y, lines);
  if (run == 64) return RunStepsOf<64>(pass, x, y, lines);
  RunStepsOf<0>(pass, x, y, lines);
}

template <typename T>
TOK_INLINE void MultiplyBy(const Buffers<T>& x, const T* by_re, const T* by_im, int64_t count,
                           int64_t lines) {
  T* __restrict re = x.re;
  T* __restrict im = x.im;
  for (int64_t i = 0; i < count; ++i) {
    T b_re = by_re[i], b_im = by_im[i];
    TOK_IVDEP
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
