#pragma once

#include "interp/value.h"

namespace tokamak {

// As the op multiply has it. Spelled out: operator* of std::complex looks for NaN in every product,
// and finds infinities in some.
inline Complex Times(Complex x, Complex y) {
  return {x.real() * y.real() - x.imag() * y.imag(), x.real() * y.imag() + x.imag() * y.real()};
}
inline double Times(double x, double y) {
  return x * y;
}

}  // namespace tokamak
