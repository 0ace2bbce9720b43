#pragma once

#include "kernel/scalar.h"
#include "runtime/convolution.h"
#include "runtime/matrix_product.h"

namespace tokamak::cuda {

// Bits of a narrow type as a number.
template <ScalarType kType>
struct NarrowFloat {
  uint16_t bits = 0;
  NarrowFloat() = default;
  explicit NarrowFloat(double value) : bits(static_cast<uint16_t>(BitsOfDouble(kType, value))) {}
  explicit operator double() const { return DoubleOfBits(kType, bits); }
};
using BF16 = NarrowFloat<ScalarType::kBF16>;
using F16 = NarrowFloat<ScalarType::kF16>;

// Computes a convolution by definition; sums in double.
void Convolve(const Convolution& convolution, const ProductArrays& arrays);

}  // namespace tokamak::cuda
