#pragma once

#include "kernel/formulas/functions.h"

namespace tokamak::formulas {

// A complex number with f64 parts.
struct Complex {
  Scalar re, im;
};

Complex Multiply(Complex x, Complex y);         // whose products are in range
Complex MultiplyInRange(Complex x, Complex y);  // whose result is
Complex Divide(Complex x, Complex y);
Scalar Modulus(Complex z);

// |scaled|^2, z = scaled * unscale, such that squares stay in range.
struct ScaledModulus {
  Complex scaled;
  Scalar square, unscale;
};
ScaledModulus ScaledModulusOf(Complex z);

// nullopt: there is no formula (some functions are exact enough for c64 alone).
std::optional<Complex> ComplexFunction(Op op, Complex x, Complex y, bool is_c64);
std::optional<Complex> ComplexInverse(Op op, Complex z);
Complex ComplexLog(Complex z);
Complex ComplexExp(Complex z);
Complex ComplexSqrt(Complex z);

}  // namespace tokamak::formulas
