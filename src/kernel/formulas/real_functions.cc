// Which function of reals an op is.

#include "kernel/formulas/functions.h"

namespace tokamak::formulas {

Scalar Polynomial(Scalar x, std::initializer_list<double> coefficients) {
  const double* next = coefficients.end();
  Scalar sum = x.Like(*--next);
  while (next != coefficients.begin()) sum = Fma(sum, x, x.Like(*--next));
  return sum;
}

std::optional<Scalar> RealFunction(Op op, std::span<const Element> operands) {
  switch (op) {
    default:
      static_cast<void>(operands);
      return std::nullopt;
  }
}

}  // namespace tokamak::formulas
