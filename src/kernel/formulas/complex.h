#pragma once

#include "kernel/formulas/functions.h"

namespace tokamak::formulas {

// Complex arithmetic and functions as formulas. All components are f64.
struct Complex {
  Scalar re, im;
};

Complex Multiply(Complex x, Complex y);         // requires that all products are in range
Complex MultiplyInRange(Complex x, Complex y);  // requires only that the result is in range
Complex Divide(Complex x, Complex y);
Scalar Modulus(Complex z);

// z = scaled * unscale, and square = |scaled|^2 does not overflow or underflow.
struct ScaledModulus {
  Complex scaled;
  Scalar square, unscale;
};
ScaledModulus ScaledModulusOf(Complex z);

// nullopt if there is no formula (some functions are accurate enough for c64 only).
std::optional<Complex> ComplexFunction(Op op, Complex x, Complex y, bool is_c64);
std::optional<Complex> ComplexInverse(Op op, Complex z);
Complex ComplexLog(Complex z);
Complex ComplexSqrt(Complex z);

}  // namespace tokamak::formulas
