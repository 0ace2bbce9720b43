// Complex arithmetic. Components are f64, also for c64: then products are exact and nothing
// overflows. Infinities and NaNs follow Annex G of the C standard, except in products, where XLA
// and NumPy do not apply it.

#include "kernel/formulas/complex.h"

namespace tokamak::formulas {
namespace {

Scalar IsInfinite(Scalar x) {
  return AbsOf(x) == Infinity(x);
}
Scalar IsFinite(Scalar x) {
  return AbsOf(x) < Infinity(x);
}
// 1 for infinity and 0 otherwise, with the sign of x.
Scalar Boxed(Scalar x) {
  return CopySign(Choose(IsInfinite(x), x.Like(1), x.Like(0)), x);
}
Complex Pick(Scalar condition, Complex yes, Complex no) {
  return {Choose(condition, yes.re, no.re), Choose(condition, yes.im, no.im)};
}

// The quotient if both components came out as NaN (Annex G recovery).
Complex OpenQuotient(Complex x, Complex y, Scalar denominator) {
  Scalar infinity = Infinity(x.re), zero = x.re.Like(0);
  Complex none{NotANumber(x.re), NotANumber(x.re)};
  Scalar end = CopySign(infinity, y.re);
  Complex by_zero{end * x.re, end * x.im};
  Complex a{Boxed(x.re), Boxed(x.im)}, b{Boxed(y.re), Boxed(y.im)};
  Complex large{infinity * (a.re * y.re + a.im * y.im), infinity * (a.im * y.re - a.re * y.im)};
  Complex small{zero * (x.re * b.re + x.im * b.im), zero * (x.im * b.re - x.re * b.im)};
  Scalar x_infinite = IsInfinite(x.re) | IsInfinite(x.im);
  Scalar y_infinite = IsInfinite(y.re) | IsInfinite(y.im);
  Scalar x_finite = IsFinite(x.re) & IsFinite(x.im), y_finite = IsFinite(y.re) & IsFinite(y.im);
  Scalar is_zero = (denominator == 0) & !(IsNan(x.re) & IsNan(x.im));
  Complex result = Pick(y_infinite & x_finite, small, none);
  result = Pick(x_infinite & y_finite, large, result);
  return Pick(is_zero, by_zero, result);
}

// A power of two that scales x near 1, for any x > 0.
Scalar ScaleOf(Scalar x) {
  KernelBuilder& b = x.builder();
  auto number = [&](Bits field) { return b.ConstantBits(ScalarType::kU64, field << 52); };
  Scalar field = x.BitsAs(ScalarType::kU64) & number(0x7ff);
  return (number(0x7fe) - LesserOf(field, number(0x7fd))).BitsAs(ScalarType::kF64);
}

// x * scale, but never 0 for nonzero x, because it may be multiplied by infinity.
Scalar ScaledAlive(Scalar x, Scalar scale) {
  Scalar scaled = x * scale;
  return Choose((scaled == 0) & (x != 0), CopySign(x.Like(0x1p-1074), x), scaled);
}

}  // namespace

Complex Multiply(Complex x, Complex y) {
  return {x.re * y.re - x.im * y.im, x.re * y.im + x.im * y.re};
}

Complex MultiplyInRange(Complex x, Complex y) {
  Scalar x_size = GreaterOf(AbsOf(x.re), AbsOf(x.im));
  Scalar y_size = GreaterOf(AbsOf(y.re), AbsOf(y.im));
  Scalar is_over = x_size * y_size > 0x1p1000, one = x.re.Like(1);
  Scalar less = Choose(is_over, one.Like(0x1p-600), one);
  Scalar more = Choose(is_over, one.Like(0x1p600), one);
  Scalar a = ScaledAlive(x.re, less), b = ScaledAlive(x.im, less);
  Scalar c = ScaledAlive(y.re, less), d = ScaledAlive(y.im, less);
  return {(a * c - b * d) * more * more, (a * d + b * c) * more * more};
}

Complex Divide(Complex x, Complex y) {
  Scalar size = GreaterOf(AbsOf(y.re), AbsOf(y.im)), scale = ScaleOf(size);
  Scalar c = ScaledAlive(y.re, scale), d = ScaledAlive(y.im, scale);
  Scalar denominator = c * c + d * d;
  Scalar is_large = (AbsOf(x.re) > 0x1p1000) | (AbsOf(x.im) > 0x1p1000);
  Scalar less = Choose(is_large, scale.Like(0.125), scale.Like(1));
  Scalar more = Choose(is_large, scale.Like(8), scale.Like(1));
  Scalar a = x.re * less, b = x.im * less;
  Complex quotient{(a * c + b * d) / denominator * scale * more,
                   (b * c - a * d) / denominator * scale * more};
  return Pick(IsNan(quotient.re) & IsNan(quotient.im), OpenQuotient(x, y, denominator), quotient);
}

ScaledModulus ScaledModulusOf(Complex z) {
  Scalar a = AbsOf(z.re), b = AbsOf(z.im), size = GreaterOf(a, b);
  Scalar is_huge = size > 0x1p500, is_tiny = size < 0x1p-500, one = a.Like(1);
  Scalar scale = Choose(is_huge, a.Like(0x1p-600), Choose(is_tiny, a.Like(0x1p600), one));
  Scalar unscale = Choose(is_huge, a.Like(0x1p600), Choose(is_tiny, a.Like(0x1p-600), one));
  Complex scaled{z.re * scale, z.im * scale};
  Scalar square = Fma(scaled.re, scaled.re, scaled.im * scaled.im);
  return {scaled, square, unscale};
}

// Infinite if a component is infinite, unless the other is NaN.
Scalar Modulus(Complex z) {
  auto [scaled, square, unscale] = ScaledModulusOf(z);
  return SqrtOf(square) * unscale;
}

namespace {

Scalar Less(Complex x, Complex y) {
  return ((x.re != y.re) & (x.re < y.re)) | ((x.re == y.re) & (x.im < y.im));
}
Scalar HasNan(Complex z) {
  return IsNan(z.re) | IsNan(z.im);
}

// Ops that only move or add components, in the type of the components.
std::optional<Element> PlainOp(Op op, std::span<const Element> operands) {
  Complex x{operands[0][0], operands[0][1]}, y = x;
  if (operands.size() > 1) y = {operands[1][0], operands[1][1]};
  auto element = [](Complex z) { return Element{z.re, z.im}; };
  switch (op) {
    case Op::kAdd:
      return Element{x.re + y.re, x.im + y.im};
    case Op::kSubtract:
      return Element{x.re - y.re, x.im - y.im};
    case Op::kNegate:
      return Element{-x.re, -x.im};
    case Op::kConj:
      return Element{x.re, -x.im};
    case Op::kReal:
      return Element{x.re, Scalar()};
    case Op::kImag:
      return Element{x.im, Scalar()};
    case Op::kIsFinite:
      return Element{IsFinite(x.re) & IsFinite(x.im), Scalar()};
    case Op::kMaximum:
      return element(Pick(HasNan(x) | ((!HasNan(y)) & Less(y, x)), x, y));
    case Op::kMinimum:
      return element(Pick(HasNan(x) | ((!HasNan(y)) & Less(x, y)), x, y));
    default:
      return std::nullopt;
  }
}

Complex Sign(Complex z) {
  auto [scaled, square, unscale] = ScaledModulusOf(z);
  Scalar modulus = SqrtOf(square), nan = NotANumber(z.re);
  Complex result = Pick(modulus == 0, z, {scaled.re / modulus, scaled.im / modulus});
  return Pick(HasNan(z), {nan, nan}, result);
}

Complex Square(Complex z) {
  Scalar real = (z.re - z.im) * (z.re + z.im);
  return {Choose(real == 0, real.Like(0), real), z.re * z.im * 2};  // x x - y y is never -0
}

}  // namespace

std::optional<Element> ComplexOp(Op op, std::span<const Element> operands) {
  if (std::optional<Element> plain = PlainOp(op, operands)) return plain;
  ScalarType type = operands[0][0].type();
  bool is_c64 = type == ScalarType::kF32;
  auto wide = [](const Element& z) {
    return Complex{z[0].As(ScalarType::kF64), z[1].As(ScalarType::kF64)};
  };
  Complex x = wide(operands[0]), y = operands.size() > 1 ? wide(operands[1]) : x;
  std::optional<Complex> result;
  Scalar modulus;
  switch (op) {
    case Op::kAbs:
      // Squares of f32 do not overflow in f64.
      modulus = is_c64 ? SqrtOf(Fma(x.re, x.re, x.im * x.im)) : Modulus(x);
      return Element{Choose(HasNan(x), NotANumber(x.re), modulus).As(type), Scalar()};
    case Op::kMultiply:
      result = is_c64 ? Multiply(x, y) : MultiplyInRange(x, y);
      break;
    case Op::kDivide:
      result = Divide(x, y);
      break;
    case Op::kSign:
      result = Sign(x);
      break;
    case Op::kSquare:
      result = Square(x);
      break;
    default:
      result = ComplexFunction(op, x, y, is_c64);
  }
  if (!result) return std::nullopt;
  return Element{result->re.As(type), result->im.As(type)};
}

}  // namespace tokamak::formulas
