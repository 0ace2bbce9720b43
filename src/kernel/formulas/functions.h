#pragma once

#include <initializer_list>
#include <optional>

#include "kernel/formulas.h"

// Building blocks of the formulas. A function of reals takes f32 or f64 scalars and returns the
// type of its argument, unless a comment says f64.

namespace tokamak::formulas {

// ---- storage.cc: bit patterns of narrow types
bool IsNarrow(ElementType type);  // a real narrower than 32 bits
// Rounds an f32 or f64 scalar to a real type, ties to even. The result is in its ComputeType.
Scalar RoundTo(ElementType type, Scalar value);
// The bits of an integer or real element in memory, as a u32 (u64 for 64 bits).
Scalar PatternOf(ElementType type, Scalar value);
Scalar FromPattern(ElementType type, Scalar pattern);
// Wraps an integer into the range of its type. Ops on s2, s4, u2 and u4 wrap their results.
Scalar WrapTo(ElementType type, Scalar value);

// ---- arithmetic.cc, rounding.cc
Scalar NotANumber(Scalar like);
Scalar Infinity(Scalar like);
Scalar IsNan(Scalar x);
bool HasApproximations(Scalar x);  // whether exp2 and inverse are instructions for this type
// x / y within 1 ulp. Requires that y and the quotient are far from overflow and underflow.
Scalar ApproximateQuotient(Scalar x, Scalar y);
Scalar MaximumOf(Scalar x, Scalar y);  // propagates NaN; -0 < 0
Scalar MinimumOf(Scalar x, Scalar y);
Scalar SignOf(Scalar x);
Scalar RemainderOf(Scalar x, Scalar y);  // the remainder of the truncated quotient; exact
std::optional<Scalar> RealOp(Op op, std::span<const Element> operands);
// x * y + z with one rounding for f32 and f64. For narrower types, RoundTo of that.
Scalar FmaOp(ElementType type, std::span<const Element> operands);
std::optional<Scalar> RoundingOp(Op op, Scalar x);
Scalar ReducedPrecision(ElementType type, Scalar x, const ReducePrecisionAttrs& attrs);
Scalar NextAfter(ElementType type, Scalar x, Scalar y);
Scalar StochasticConvert(ElementType to, Scalar x, Scalar random);

// ---- integer.cc
std::optional<Scalar> IntegerOp(Op op, ElementType type, std::span<const Element> operands);
std::optional<Scalar> PredOp(Op op, std::span<const Element> operands);
// ---- compare.cc
std::optional<Scalar> Compare(ElementType type, const CompareAttrs& attrs, const Element& x,
                              const Element& y);

// ---- exponential.cc, logarithm.cc, power.cc
Scalar Exp(Scalar x);
Scalar ExpOfSum(Scalar high, Scalar low);  // f64
Scalar Expm1(Scalar x);
Scalar Logistic(Scalar x);
Scalar Tanh(Scalar x);
// For results of 16 bits; on GPUs shorter than the ones for f32.
Scalar ExpFor16Bits(Scalar x);
Scalar LogisticFor16Bits(Scalar x);
Scalar TanhFor16Bits(Scalar x);
Scalar Log(Scalar x);
Scalar Log1p(Scalar x);
Scalar Power(Scalar x, Scalar y);
Scalar CubeRoot(Scalar x);
Scalar CubeRootOfF64(Scalar x,
                     int steps);  // x normal; `steps` iterations of Halley's method
// ---- double_double.cc: double-double arithmetic (an unevaluated sum of two f64)
struct Double {
  Scalar high, low;
};
Double TimesExactly(Scalar x, Scalar y);
Double AddExactly(Scalar x, Scalar y);
Double Renormalized(Scalar high, Scalar low);  // |high| >= |low|
Double Times(Double x, Double y);
Double Plus(Double x, Double y);
Double PlusOrdered(Double x, Double y);  // |x| >= |y|
// Logarithms of positive f64 numbers, for Power; see logarithm.cc for their accuracy.
Scalar LogForPowerOfF32(Scalar x);
Double LogForPower(Scalar x);
// ---- trigonometric.cc
Scalar Sin(Scalar x);
Scalar Cos(Scalar x);
Scalar Tan(Scalar x);
struct SinCos {
  Scalar sin, cos;
};
SinCos SinCosOf(Scalar x);    // f64
SinCos SinCosOfPi(Scalar x);  // of pi * x, f64
// ---- inverse_trigonometric.cc
Scalar Atan(Scalar x);
Scalar Atan2(Scalar y, Scalar x);
Scalar Asin(Scalar x);  // f64
Scalar Acos(Scalar x);  // f64
// ---- hyperbolic.cc, f64
Scalar Sinh(Scalar x);
Scalar Cosh(Scalar x);
Scalar Asinh(Scalar x);
Scalar Acosh(Scalar x);
Scalar Atanh(Scalar x);
// ---- error_function.cc
Scalar Erf(Scalar x);
Scalar Erfc(Scalar x);           // f64
Scalar ErfcFor16Bits(Scalar x);  // f32, for results of 16 bits
Scalar ErfInv(Scalar x);
// ---- gamma.cc, f64
Scalar Lgamma(Scalar x);
Scalar Digamma(Scalar x);
// ---- zeta.cc, f64, accurate enough for f32 results
Scalar Zeta(Scalar s, Scalar q);
Scalar Polygamma(Scalar n, Scalar x);
// ---- bessel.cc, f64
Scalar BesselI1e(Scalar x);

// ---- functions of reals; nullopt if `op` is not one. Accurate enough for `type`.
std::optional<Scalar> RealFunction(Op op, ElementType type, std::span<const Element> operands);
// ---- complex.cc
std::optional<Element> ComplexOp(Op op, std::span<const Element> operands);

// c0 + c1 x + c2 x^2 ...
Scalar Polynomial(Scalar x, std::initializer_list<double> coefficients);

}  // namespace tokamak::formulas
