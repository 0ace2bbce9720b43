// erf, erfc and the inverse of erf.

#include "kernel/formulas/functions.h"

namespace tokamak::formulas {
namespace {

bool IsWideErf(Scalar x) {
  return x.type() == ScalarType::kF64;
}

// erf x for |x| <= 1: x + x p(x^2)
Scalar ErfNearZero(Scalar x) {
  Scalar u = x * x;
  Scalar tail =
      IsWideErf(x)
          ? Polynomial(u, {0.12837916709551259, -0.37612638903183754, 0.11283791670955121,
                           -0.026866170645129840, 0.0052239776254232985, -0.00085483270219348297,
                           0.00012055332902888736, -1.4925647567519332e-5, 1.6462045441468418e-6,
                           -1.6364642158167616e-7, 1.4792401209404813e-8, -1.2164560057283450e-9,
                           8.7090451290531062e-11, -4.2309458242953377e-12})
          : Polynomial(u, {0.128379166, -0.376126379, 0.112837821, -0.0268654302, 0.00522103161,
                           -0.000848408032, 0.000112659589, -9.66704465e-6});
  return Fma(x, tail, x);
}

// e^(x^2) erfc(x) (1 + 2 x) as a polynomial in t = (x - 4) / (x + 4), 0 <= x < 28.
Scalar ScaledErfc(Scalar x) {
  Scalar t = (x - 4) / (x + 4);
  Scalar p =
      Polynomial(t, {1.2329951186255526,     -0.13962111684056289,    0.015379652102620741,
                     0.068097054254737319,   -0.10103906603635213,    0.093732834996794120,
                     -0.066330365811529388,  0.037167515562492863,    -0.016197734059115006,
                     0.0050319697558954260,  -0.00075777334141333000, -0.00019925550755614952,
                     0.00015062224394830299, -2.4403169244974074e-5,  -1.1224789135154701e-5,
                     5.7178872846321855e-6,  3.0135049944875397e-7,   -8.3516196886968469e-7,
                     6.2707271571983109e-8,  1.1534943745754157e-7,   -7.7154186144178302e-9,
                     -1.3670989863347383e-8, -1.8206098680308682e-9});
  return p / Fma(x, x.Like(2), x.Like(1));
}

// erfc for x >= 0
Scalar ErfcOfPositive(Scalar x) {
  Scalar bounded = LesserOf(x.Like(27.5), x);
  Double square = TimesExactly(bounded, bounded);
  return ExpOfSum(-square.high, -square.low) * ScaledErfc(bounded);
}

// x| as one node for x and -x, however the sign was flipped, so that both share one erf.
Scalar SizeOf(Scalar x) {
  KernelBuilder& b = x.builder();
  const ScalarNode node = b.kernel().node(x.id());
  auto operand = [&](size_t i) { return Scalar(&b, node.operands[i]); };
  if (node.prim == Prim::kNeg) return SizeOf(operand(0));
  if (node.prim == Prim::kMul)
    for (size_t i = 0; i < 2; ++i) {
      const ScalarNode factor = b.kernel().node(node.operands[i]);
      if (factor.prim != Prim::kNeg) continue;
      Scalar turned = Scalar(&b, factor.operands[0]), other = operand(1 - i);
      return SizeOf(i == 0 ? turned * other : other * turned);
    }
  return AbsOf(x);
}

// erf x for x >= 0 with the hardware's 2^x (tools/fit_formulas.py): x + x p(x^2), and from 15/16 on
// 1 - 2^q(x), where q approximates log2(erfc). Beyond 4 the result is 1, and q keeps decreasing.
Scalar ErfByExp2(Scalar x) {
  Scalar small = Fma(x,
                     Polynomial(x * x, {0.128379151, -0.376124829, 0.112816818, -0.0267610997,
                                        0.00498437183, -0.000594312092}),
                     x);
  Scalar log = Polynomial(
      x, {-0.00303008966, -1.61496270, -0.940397739, -0.130397618, 0.0221335907, -0.00176193914});
  return Choose(x < 0.9375, small, 1 - x.builder().Make(Prim::kExp2, {log}));
}

}  // namespace

Scalar Erf(Scalar x) {
  Scalar size = SizeOf(x);
  if (HasApproximations(x)) return CopySign(ErfByExp2(size), x);
  Scalar small = ErfNearZero(size), large;
  if (IsWideErf(x)) {
    large = 1 - ErfcOfPositive(size);
  } else {
    // log(erfc x) from 1 to 4.1, where 1 - erfc x already rounds to 1.
    Scalar bounded = LesserOf(x.Like(4.1), size);
    Scalar log = Polynomial(
        bounded, {0.000433129171, -1.13075125, -0.630804598, -0.111218929, 0.0272124596,
                  -0.00511536701, 0.000700442237, -6.49494395e-5, 3.59571095e-6, -8.81347617e-8});
    large = 1 - Exp(log);
  }
  return CopySign(Choose(size < 1, small, large), x);
}

Scalar Erfc(Scalar x) {
  Scalar size = AbsOf(x);
  Scalar far = ErfcOfPositive(size);
  Scalar beyond = Choose(x < 0, 2 - far, far);
  return Choose((x < 0.5) & (size < 1), 1 - ErfNearZero(x), beyond);
}

// t e^(q(t) - x^2) with t = 1 / (1 + x / 2): relative error 2^-20 near 0, 2^-16 where the result is
// tiny. The square of a narrow number is exact.
Scalar ErfcFor16Bits(Scalar x) {
  Scalar size = LesserOf(x.Like(14), AbsOf(x)), below = Fma(size, x.Like(0.5), x.Like(1));
  Scalar t = HasApproximations(x) ? x.builder().Make(Prim::kInverse, {below}) : 1 / below;
  Scalar q = Polynomial(t, {-1.26546752, 0.998484671, 0.394351453, -0.0403117761, 0.350025862,
                            -1.00027716, 0.750679791, -0.187486038});
  Scalar far = t * ExpFor16Bits(Fma(-size, size, q));
  return Choose(x < 0, 2 - far, far);
}

// erfinv(x) = x p(w) with w = -log(1 - x^2): a polynomial in w, beyond 5 one in sqrt(w). For f64
// this is the initial value of Halley's method on erf or, near 1, on erfc.
Scalar ErfInv(Scalar x) {
  Scalar size = AbsOf(x), w = -Log(Fma(-x, x, x.Like(1)));
  Scalar t = w - 2.5, s = SqrtOf(w) - 3.1;
  Scalar is_near = w < 5;
  // p minus 1 or, for large w, minus 2: then the final sum is the only rounding of its magnitude.
  Scalar near =
      Polynomial(t, {0.50140936044, 0.246640280, -0.00417739293, -0.00125272642, 0.000218349393,
                     -4.97241990e-6, -3.46398519e-6, 4.68131361e-7, 2.33359678e-8, -8.93192631e-9});
  Scalar far =
      Polynomial(s, {0.9332316741, 1.00335610, 0.00746011455, -0.00569671765, 0.00412101485,
                     -0.00271205790, 0.00131868268, -0.000312589138, -0.000127769788,
                     0.000161878139, -5.16809851e-5, -1.40340862e-5, 1.02531285e-5});
  // For f64, w reaches 37. Slightly less than sqrt(w) is a good enough initial value there.
  if (IsWideErf(x)) far = Choose(w < 17, far, Fma(SqrtOf(w), x.Like(1.0075), x.Like(-2.2)));
  Scalar y = Fma(size, Choose(is_near, near, far), Choose(is_near, size, size * 2));
  if (IsWideErf(x)) {
    for (int i = 0; i < 2; ++i) {
      Scalar error = Choose(size < 0.5, ErfNearZero(y) - size, (1 - size) - ErfcOfPositive(y));
      Scalar step = error * Exp(y * y) * 0.88622692545275801;
      y = y - step / Fma(y, step, x.Like(1));
    }
    y = Choose(size < 1e-9, size * 0.88622692545275801, y);
  }
  y = Choose(size == 1, Infinity(x), y);
  return CopySign(Choose(size <= 1, y, NotANumber(x)), x);
}

}  // namespace tokamak::formulas
