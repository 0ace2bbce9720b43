#pragma once

#include <initializer_list>
#include <optional>

#include "kernel/formulas.h"

// The parts that formulas are made of. A function of reals takes and gives f32 or f64 scalars,
// whichever its argument is, unless it says f64.

namespace tokamak::formulas {

// ---- storage.cc: the bits of narrow types
bool IsNarrow(ElementType type);  // a real of fewer than 32 bits
// The nearest number of a real type to an f32 or f64 scalar, ties to even, as its ComputeType.
Scalar RoundTo(ElementType type, Scalar value);
// The bits that an element of an integer or real type has in memory, as a u32 (u64 for 64 bits).
Scalar PatternOf(ElementType type, Scalar value);
Scalar FromPattern(ElementType type, Scalar pattern);
// An integer within the range of its type: what an op on s2, s4, u2 or u4 wraps its result with.
Scalar WrapTo(ElementType type, Scalar value);

// ---- arithmetic.cc, rounding.cc
Scalar NotANumber(Scalar like);
Scalar Infinity(Scalar like);
Scalar IsNan(Scalar x);
bool HasApproximations(Scalar x);  // exp2 and inverse are instructions
// x / y within 1 ulp, where y and the quotient are far from the ends of the numbers.
Scalar NearQuotient(Scalar x, Scalar y);
Scalar MaximumOf(Scalar x, Scalar y);  // NaN wins, -0 < 0
Scalar MinimumOf(Scalar x, Scalar y);
Scalar SignOf(Scalar x);
Scalar RemainderOf(Scalar x, Scalar y);  // of the division that is rounded towards zero; exact
std::optional<Scalar> RealOp(Op op, std::span<const Element> operands);
// x * y + z, rounded once to f32 or f64; of narrower types what RoundTo makes that of.
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
Scalar Log(Scalar x);
Scalar Log1p(Scalar x);
Scalar Power(Scalar x, Scalar y);
Scalar CubeRoot(Scalar x);
Scalar CubeRootOfF64(Scalar x,
                     int steps);  // of a normal number, by so many steps of Halley's method
// ---- double_double.cc: the unrounded sum of two f64
struct Double {
  Scalar high, low;
};
Double TimesExactly(Scalar x, Scalar y);
Double AddExactly(Scalar x, Scalar y);
Double Renormalized(Scalar high, Scalar low);  // |high| >= |low|
Double Times(Double x, Double y);
Double Plus(Double x, Double y);
Double PlusOrdered(Double x, Double y);  // |x| >= |y|
// Logarithms of positive f64 numbers for powers, see there.
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
SinCos SinCosOfPi(Scalar x);  // of pi x, f64
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
// ---- zeta.cc, f64 for results of f32
Scalar Zeta(Scalar s, Scalar q);
Scalar Polygamma(Scalar n, Scalar x);
// ---- bessel.cc, f64
Scalar BesselI1e(Scalar x);

// ---- functions of reals; nullopt: not one of them. The result may be as exact as `type` is.
std::optional<Scalar> RealFunction(Op op, ElementType type, std::span<const Element> operands);
// ---- complex.cc
std::optional<Element> ComplexOp(Op op, std::span<const Element> operands);

// c0 + c1 x + c2 x^2 ...
Scalar Polynomial(Scalar x, std::initializer_list<double> coefficients);

}  // namespace tokamak::formulas
