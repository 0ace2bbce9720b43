// sinh, cosh and the inverses, in f64.

#include "kernel/formulas/functions.h"

namespace tokamak::formulas {
namespace {

constexpr double kLn2 = 0x1.62e42fefa39efp-1;

// e^x / 2 without overflow of e^x, for x >= 0.
Scalar HalfExp(Scalar x) {
  Double halved = AddExactly(x, x.Like(-kLn2));
  return ExpOfSum(halved.high, halved.low - 0x1.abc9e3b39803fp-56);
}

}  // namespace

Scalar Sinh(Scalar x) {
  Scalar size = AbsOf(x);
  Scalar minus = Expm1(size);
  Scalar small = (minus + minus / (minus + 1)) * 0.5;
  return CopySign(Choose(size < 20, small, HalfExp(size)), x);
}

Scalar Cosh(Scalar x) {
  Scalar half = HalfExp(AbsOf(x));
  return half + 0.25 / half;
}

// log(x + sqrt(x^2 + 1)) = log1p(x + x^2 / (1 + sqrt(x^2 + 1)))
Scalar Asinh(Scalar x) {
  Scalar size = AbsOf(x), is_large = size > 0x1p28;
  Scalar u = Choose(is_large, x.Like(1), size), square = u * u;
  Scalar small = Log1p(u + square / (SqrtOf(square + 1) + 1));
  Scalar result = Choose(is_large, Log(size) + kLn2, small);
  return CopySign(Choose(size < 0x1p-28, size, result), x);
}

// log(x + sqrt(x^2 - 1)) = log1p(t + sqrt(2 t + t^2)), t = x - 1
Scalar Acosh(Scalar x) {
  Scalar is_large = x > 0x1p28;
  Scalar t = Choose(is_large, x.Like(1), x - 1);
  Scalar small = Log1p(t + SqrtOf(Fma(t, t, t * 2)));
  return Choose(x >= 1, Choose(is_large, Log(x) + kLn2, small), NotANumber(x));
}

// log1p(2 x / (1 - x)) / 2
Scalar Atanh(Scalar x) {
  Scalar size = AbsOf(x);
  Scalar result = Log1p((size * 2) / (1 - size)) * 0.5;
  result = Choose(size > 1, NotANumber(x), result);
  return CopySign(Choose(size < 0x1p-28, size, result), x);
}

}  // namespace tokamak::formulas
