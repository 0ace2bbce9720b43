// x^y and roots.

#include <cmath>

#include "kernel/formulas/functions.h"

namespace tokamak::formulas {
namespace {

bool IsWidePower(Scalar x) {
  return x.type() == ScalarType::kF64;
}

std::optional<double> ConstantOf(Scalar x) {
  const ScalarNode& node = x.builder().kernel().node(x.id());
  if (node.prim != Prim::kConst) return std::nullopt;
  return DoubleOfBits(node.type, node.bits);
}

// x|^y for f32 as e^(y log|x|) in f64, rounded once. The logarithm has an error of 2^-43; the
// exponent, which is below 2^8 for finite results, one of 2^-35.
Scalar PowerOfF32(Scalar size, Scalar y) {
  Scalar x = size.As(ScalarType::kF64);
  Scalar log = LogForPowerOfF32(x);
  log = Choose((x > 0) & (x < Infinity(x)), log, Choose(x == 0, -Infinity(x), x));
  Scalar exponent = y.As(ScalarType::kF64) * log;
  exponent = LesserOf(x.Like(200), GreaterOf(x.Like(-200), exponent));
  Scalar rounder = Fma(exponent, x.Like(0x1.71547652b82fep+0), x.Like(0x1.8p52));
  Scalar r = Fma(rounder - 0x1.8p52, x.Like(-0x1.62e42fefa39efp-1), exponent);
  Scalar tail =
      Polynomial(r, {0.50000000134577272, 0.16666666681614256, 0.041666465006040050,
                     0.0083333109344488690, 0.0013933641031986701, 0.00019890980869750327});
  Scalar value = Fma(r * r, tail, r) + 1;
  // 2^n: n + 1.5 * 2^52 has n in its low bits. Adds the bias and shifts out the rest.
  Scalar field = (rounder + 1023).BitsAs(ScalarType::kU64);
  field = field << field.Like(52);
  return (value * field.BitsAs(ScalarType::kF64)).As(ScalarType::kF32);
}

Scalar PowerOfF64(Scalar size, Scalar y) {
  Scalar is_plain = (size > 0) & (size < Infinity(size));
  Double log = LogForPower(Choose(is_plain, size, size.Like(1)));
  Double exponent = TimesExactly(y, log.high);
  Scalar low = Fma(y, log.low, exponent.low);
  // Where y or the product overflows, the low parts are NaN, and they do not matter.
  low = Choose(AbsOf(exponent.high) < 1000, low, low.Like(0));
  Scalar edge = y * Choose(size == 0, -Infinity(size), size);
  return ExpOfSum(Choose(is_plain, exponent.high, edge), low);
}

}  // namespace

Scalar Power(Scalar x, Scalar y) {
  if (std::optional<double> exponent = ConstantOf(y)) {
    if (*exponent == 1) return x;
    if (*exponent == 2) return x * x;
    if (*exponent == 3) return x * x * x;
    if (*exponent == -1) return 1 / x;
  }
  Scalar size = AbsOf(x), one = x.Like(1), half = y * 0.5;
  Scalar is_whole = TruncOf(y) == y;
  Scalar is_odd = is_whole & (TruncOf(half) != half);
  Scalar result = IsWidePower(x) ? PowerOfF64(size, y) : PowerOfF32(size, y);
  result = Choose((size == 1) & (y == y), one, result);  // also for infinite powers
  result = Choose(is_odd, CopySign(result, x), result);
  Scalar has_none = (x < 0) & (size < Infinity(x)) & !is_whole;
  result = Choose(has_none, NotANumber(x), result);
  return Choose((x == 1) | (y == 0), one, result);
}

// x = m 8^k with m from 1 to 8: a polynomial with an error of 2^-9, then Halley's method.
Scalar CubeRoot(Scalar x) {
  if (!IsWidePower(x)) {
    Scalar root = CubeRootOfF64(x.As(ScalarType::kF64), 1);
    return root.As(ScalarType::kF32);
  }
  Scalar is_small = AbsOf(x) < 0x1p-1022;
  Scalar root = CubeRootOfF64(Choose(is_small, x * 0x1p54, x), 2);
  return Choose(is_small, root * 0x1p-18, root);
}

Scalar CubeRootOfF64(Scalar x, int steps) {
  KernelBuilder& b = x.builder();
  auto number = [&](Bits bits) { return b.ConstantBits(ScalarType::kU64, bits); };
  Scalar bits = AbsOf(x).BitsAs(ScalarType::kU64);
  Scalar exponent = (bits >> number(52)).As(ScalarType::kU32);
  // exponent = 1023 + 3 k + r, r = 0, 1, 2; 1023 = 3 * 341, and 43691 / 2^17 is slightly more than
  // 1/3.
  Scalar third = (exponent * exponent.Like(43691)) >> exponent.Like(17);
  Scalar rest = exponent - third * exponent.Like(3);
  Scalar mantissa = (bits & number((Bits{1} << 52) - 1)) |
                    ((rest + exponent.Like(1023)).As(ScalarType::kU64) << number(52));
  Scalar m = mantissa.BitsAs(ScalarType::kF64);
  Scalar y = Polynomial(m, {0.60843491868658617, 0.48881233581505845, -0.11212010655657866,
                            0.018251656689589422, -0.0015968873373163740, 5.6552548942211020e-5});
  for (int i = 0; i < steps; ++i) {
    Scalar cube = y * y * y;
    y = Fma(y, (m - cube) / Fma(cube, m.Like(2), m), y);
  }
  Scalar scale = ((third + exponent.Like(1023 - 341)).As(ScalarType::kU64) << number(52))
                     .BitsAs(ScalarType::kF64);
  Scalar result = CopySign(y * scale, x);
  return Choose((AbsOf(x) > 0) & (AbsOf(x) < Infinity(x)), result, x);
}

}  // namespace tokamak::formulas
