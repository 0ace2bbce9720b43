#pragma once

#include "interp/value.h"

namespace tokamak {

// The complex product of the op multiply. Written out because operator* of std::complex checks
// every product for NaN and turns some NaNs into infinities.
inline Complex Times(Complex x, Complex y) {
  return {x.real() * y.real() - x.imag() * y.imag(), x.real() * y.imag() + x.imag() * y.real()};
}
inline double Times(double x, double y) {
  return x * y;
}

}  // namespace tokamak
